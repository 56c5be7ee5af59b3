package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/distribution"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/enforcement"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// lookEvery is how often each backend is asked whether it answers.
const lookEvery = 5 * time.Second

// feed keeps an Enforcement up to date with a stream's sets.
type feed struct {
	enforced *enforcement.Enforcement
	first    chan struct{} // closed with the first set

	mu          sync.Mutex
	targets     map[policycache.LoginName]*backends.Target
	unreachable []policycache.LoginName
}

func newFeed(e *enforcement.Enforcement) *feed { return &feed{enforced: e, first: make(chan struct{})} }

// apply puts a set in force, or returns why it can't be and changes nothing.
func (f *feed) apply(s *distribution.Set) error {
	targets := map[policycache.LoginName]*backends.Target{}
	for login, b := range s.Backends {
		t, err := targetOf(&b)
		if err != nil {
			return fmt.Errorf("RedisBackend %s: %w", login.Backend, err)
		}
		targets[login] = t
	}
	var policies []enforcement.Policy
	for name, p := range s.Policies {
		decoded, err := decode(&p)
		if err != nil {
			return fmt.Errorf("RateLimitPolicy %s: %w", name, err)
		}
		policies = append(policies, enforcement.Policy{
			RateLimitPolicy: decoded, Target: targets[p.Login], Source: fmt.Sprint("manager, generation ", p.Generation),
		})
	}
	if err := f.enforced.Take(policies); err != nil {
		return err
	}
	f.mu.Lock()
	f.targets = targets
	f.mu.Unlock()
	f.look(context.Background())
	select {
	case <-f.first:
	default:
		close(f.first)
	}
	return nil
}

// decode reads a policy. A field that is not known here could be a condition that
// must hold, so it is an error.
func decode(p *distribution.Policy) (*v1alpha1.RateLimitPolicy, error) {
	whole, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"namespace": p.Name.Namespace, "name": p.Name.Name, "generation": p.Generation},
		"spec":     json.RawMessage(p.Spec),
	})
	if err != nil {
		return nil, err
	}
	decoded, err := policy.DecodePolicy(whole)
	if err != nil {
		return nil, err
	}
	return decoded, policy.ValidatePolicy(decoded).ToAggregate()
}

func targetOf(b *distribution.Backend) (*backends.Target, error) {
	decoded, err := policy.DecodeBackend(fmt.Appendf(nil, `{"spec": %s}`, b.Spec))
	if err != nil {
		return nil, err
	}
	t, faults := backends.Of(b.Login.Backend, &decoded.Spec, b.Secrets)
	for _, fault := range faults {
		err = errors.Join(err, fmt.Errorf("%s: %s", fault.Field, fault.Message))
	}
	return t, err
}

// follow looks after the backends until ctx ends.
func (f *feed) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.look(ctx)
		}
	}
}

// look finds out which backends can't be reached.
func (f *feed) look(ctx context.Context) {
	f.mu.Lock()
	targets := f.targets
	f.mu.Unlock()
	var mu sync.Mutex
	var unreachable []policycache.LoginName
	var running sync.WaitGroup
	for login, t := range targets {
		running.Go(func() {
			// As long as a decision may take to connect, and to be made.
			ctx, cancel := context.WithTimeout(ctx, t.Config.DialTimeout+t.Budget)
			defer cancel()
			if f.enforced.Reach(ctx, t) != nil {
				mu.Lock()
				defer mu.Unlock()
				unreachable = append(unreachable, login)
			}
		})
	}
	running.Wait()
	slices.SortFunc(unreachable, policycache.LoginName.Compare)
	f.mu.Lock()
	defer f.mu.Unlock()
	if maps.Equal(targets, f.targets) {
		f.unreachable = unreachable
	}
}

// away lists the backends that could not be reached when last looked at.
func (f *feed) away() []policycache.LoginName {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unreachable
}
