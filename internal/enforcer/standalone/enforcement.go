package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
	"github.com/weir-dev/weir/internal/policy"
)

// enforcement keeps a Limiter up to date with files.
type enforcement struct {
	paths    []string
	address  *v1alpha1.ClientAddress
	override *target
	logger   *slog.Logger
	metrics  *metrics.Metrics
	limiter  *limiter.Limiter
	stores   *stores
	warned   map[string]bool
	current  atomic.Pointer[inForce]
}

// inForce is what a set of files has become.
type inForce struct {
	policies []shown // by Policy.Index
	set      *policy.Set
	backends []*limiter.Backend // by Policy.Index
}

// shown is a policy as it was written, and where it counts.
type shown struct {
	filesource.Policy
	target *target
}

// take puts files in force, or says what is wrong with them and changes nothing.
func (e *enforcement) take(files []filesource.File) error {
	objects, problems := filesource.Parse(files)
	targets, unresolved := e.targets(objects)
	if err := append(problems, unresolved...).Err(); err != nil {
		return err
	}
	next, err := e.compile(objects, targets)
	if err != nil {
		return err
	}
	e.limiter.Swap(&limiter.Snapshot{Set: next.set, Backends: next.backends})
	e.current.Store(next)
	e.stores.keep(next.backends)
	e.warn(objects.Warnings)
	return nil
}

// targets finds the target of each policy.
func (e *enforcement) targets(objects *filesource.Objects) ([]*target, filesource.Problems) {
	if e.override == nil {
		return resolve(objects)
	}
	targets := make([]*target, len(objects.Policies))
	for i := range targets {
		targets[i] = e.override
	}
	return targets, nil
}

// compile makes a set of the policies and opens the stores that they need.
func (e *enforcement) compile(objects *filesource.Objects, targets []*target) (*inForce, error) {
	byName := map[policy.Name]shown{}
	var compiled []*policy.Policy
	for i, p := range objects.Policies {
		c, err := policy.Compile(p.RateLimitPolicy, policy.Defaults{
			KeyPrefix: targets[i].keyPrefix, HashKey: targets[i].hashKey, ClientAddress: e.address,
		})
		if err != nil {
			return nil, filesource.Problems{p.At("", err.Error())}.Err()
		}
		compiled = append(compiled, c)
		byName[c.Name] = shown{p, targets[i]}
	}
	next := &inForce{set: policy.NewSet(compiled)}
	used := make([]*target, len(compiled))
	for i, p := range next.set.Policies() {
		next.policies = append(next.policies, byName[p.Name])
		if p.Mode != v1alpha1.ModeDisabled {
			used[i] = byName[p.Name].target
		}
	}
	var err error
	next.backends, err = e.stores.backends(used)
	return next, err
}

// warn logs what is odd, each once.
func (e *enforcement) warn(warnings filesource.Problems) {
	for _, w := range warnings {
		if !e.warned[w.String()] {
			e.warned[w.String()] = true
			e.logger.Warn("policies look odd", attributes(filesource.Problems{w}.Err())...)
		}
	}
}

// follow takes each change of the files over, until ctx ends.
func (e *enforcement) follow(ctx context.Context, files []filesource.File) {
	filesource.NewWatcher(e.paths, files).Run(ctx, func(files []filesource.File, err error) {
		if err != nil {
			e.metrics.Reloaded(false)
			e.logger.Warn("policies are out of reach, the last good set stays in force", "error", err)
			return
		}
		if err := e.take(files); err != nil {
			e.metrics.Reloaded(false)
			e.logger.Error("policies are broken, the last good set stays in force", attributes(err)...)
			return
		}
		e.metrics.Reloaded(true)
		e.logger.Info("policies are in force", e.summary()...)
	})
}

// attributes tell the first problem by its parts, and all of them in one value.
func attributes(err error) []any {
	var wrong *filesource.ProblemsError
	if !errors.As(err, &wrong) {
		return []any{"error", err}
	}
	const most = 20
	problems, first := wrong.Problems, wrong.Problems[0]
	attrs := []any{"file", first.File, "line", first.Line, "field", first.Field, "problem", first.Message}
	if more := problems[1:]; len(more) > 0 {
		attrs = append(attrs, "problems", len(problems), "others", more[:min(len(more), most)].String())
	}
	return attrs
}

// summary is what is in force in short.
func (e *enforcement) summary() []any {
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

// trusts tells that some policy believes what this peer forwards.
func (e *enforcement) trusts(peer netip.Addr) bool { return e.current.Load().set.TrustsPeer(peer) }
