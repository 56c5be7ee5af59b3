package enforcement

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// Policy is a valid policy, and where it counts.
type Policy struct {
	*v1alpha1.RateLimitPolicy
	Target *backends.Target
	// Source says where the policy comes from, for people.
	Source string
}

// Options are an Enforcement's surroundings.
type Options struct {
	// ClientAddress is for policies without one of their own. Defaults to trusting
	// nobody.
	ClientAddress *v1alpha1.ClientAddress
	// Limiter is for the decisions.
	Limiter limiter.Options
	// Observe makes the observer of a backend's store. Required.
	Observe func(policy.Name) redisstore.Observer
}

// Enforcement keeps a Limiter up to date. Take is for one goroutine at a time, all
// else for many.
type Enforcement struct {
	address *v1alpha1.ClientAddress
	limiter *limiter.Limiter
	stores  *backends.Stores
	current atomic.Pointer[inForce]
}

// inForce is what a set of policies has become.
type inForce struct {
	policies []Policy // by policy.Policy.Index
	set      *policy.Set
}

// New returns an Enforcement without policies.
func New(opts Options) *Enforcement {
	e := &Enforcement{address: opts.ClientAddress, limiter: limiter.New(opts.Limiter), stores: backends.NewStores(opts.Observe)}
	e.current.Store(&inForce{set: policy.NewSet(nil)})
	return e
}

// CompileError is the error of a policy that validation should have refused.
type CompileError struct {
	// Index is the policy's place in what was to be taken.
	Index int
	Err   error
}

func (e *CompileError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *CompileError) Unwrap() error { return e.Err }

// Take puts policies in force, in place of those before.
func (e *Enforcement) Take(policies []Policy) error {
	byName := map[policy.Name]Policy{}
	var compiled []*policy.Policy
	for i, p := range policies {
		c, err := policy.Compile(p.RateLimitPolicy, policy.Defaults{
			KeyPrefix: p.Target.KeyPrefix, HashKey: p.Target.HashKey, ClientAddress: e.address,
		})
		if err != nil {
			return &CompileError{i, err}
		}
		compiled = append(compiled, c)
		byName[c.Name] = p
	}
	next := &inForce{set: policy.NewSet(compiled)}
	used := make([]*backends.Target, len(compiled))
	for i, p := range next.set.Policies() {
		next.policies = append(next.policies, byName[p.Name])
		if p.Mode != v1alpha1.ModeDisabled {
			used[i] = byName[p.Name].Target
		}
	}
	stores, err := e.stores.Backends(used)
	if err != nil {
		return err
	}
	e.stores.Warm()
	e.limiter.Swap(&limiter.Snapshot{Set: next.set, Backends: stores})
	e.current.Store(next)
	e.stores.Keep(stores)
	return nil
}

// Reach returns why the target of a policy in force can't be reached now, until
// ctx's deadline.
func (e *Enforcement) Reach(ctx context.Context, t *backends.Target) error {
	return e.stores.Reach(ctx, t)
}

// Decider decides requests by what is in force.
func (e *Enforcement) Decider() limiter.Decider { return e.limiter }

// Trusts tells that some policy believes what this peer forwards.
func (e *Enforcement) Trusts(peer netip.Addr) bool { return e.current.Load().set.TrustsPeer(peer) }

// Policies is how many are in force.
func (e *Enforcement) Policies() int { return len(e.current.Load().policies) }

// Summary is what is in force in short, as attributes of a log line.
func (e *Enforcement) Summary() []any {
	const most = 20
	policies := e.current.Load().set.Policies()
	var names []string
	for _, p := range policies[:min(len(policies), most)] {
		names = append(names, p.Name.String())
	}
	if more := len(policies) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return []any{"policies", len(policies), "names", strings.Join(names, ", ")}
}

// Close gives back what is on its way, and ends all connections. Call it when no
// decision is running or to come.
func (e *Enforcement) Close() {
	e.limiter.Close()
	e.stores.Close()
}
