package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// Options are what a Limiter needs besides its snapshots.
type Options struct {
	// Observer learns of decisions. Defaults to nobody.
	Observer Observer
	// Fallback counts for policies with failureMode LocalFallback while their
	// store cannot answer. Defaults to none: such requests are then allowed.
	Fallback Store
}

// Limiter decides requests by the snapshot that was swapped in last.
type Limiter struct {
	observer Observer
	fallback Store
	current  atomic.Pointer[Snapshot]
}

// retryUnavailable is how long to wait when a store could not answer, in seconds.
const retryUnavailable = 1

// New returns a limiter that allows everything until a snapshot is swapped in.
func New(opts Options) *Limiter {
	l := &Limiter{observer: opts.Observer, fallback: opts.Fallback}
	if l.observer == nil {
		l.observer = nobody{}
	}
	l.current.Store(&Snapshot{Set: policy.NewSet(nil)})
	return l
}

// Swap puts a snapshot in force for decisions that begin from now on.
func (l *Limiter) Swap(s *Snapshot) {
	l.observer.Enforcing(s.Set)
	l.current.Store(s)
}

// Decide implements Decider.
func (l *Limiter) Decide(ctx context.Context, req *policy.Request, d *Decision) {
	d.Reset()
	s := l.current.Load()
	s.Set.Match(req, &d.matcher)
	l.observeMatch(&d.matcher)
	if d.refuseMissing() {
		l.observer.Decided(d.Cause, OutcomeKeyMissing)
		return
	}
	d.gather(s, req)
	if len(d.groups) == 1 {
		l.charge(ctx, &d.groups[0], d.batch[:])
	} else if len(d.groups) > 1 {
		l.chargeSeveral(ctx, d.groups)
	}
	d.settle()
	l.takeBack(ctx, d)
	l.observeOutcome(d)
}

func (l *Limiter) observeMatch(m *policy.Matcher) {
	for _, p := range m.Exempt {
		l.observer.Exempted(p)
	}
	if m.ForwardedIgnored {
		l.observer.ForwardedIgnored()
	}
	for i := range m.Matches {
		if m.Matches[i].Missing {
			l.observer.KeyMissing(m.Matches[i].Rule)
		}
	}
}

// refuseMissing refuses a request without a part that it must have, before
// anything is counted. Shadow policies never refuse.
func (d *Decision) refuseMissing() bool {
	for i := range d.matcher.Matches {
		match := &d.matcher.Matches[i]
		if match.Deny && match.Rule.Policy.Mode == v1alpha1.ModeEnforce {
			d.Outcome, d.Cause, d.RetryAfter = KeyMissing, match.Rule, retryUnavailable
			return true
		}
	}
	return false
}

// gather makes one operation per backend of the matches. A counter that is met
// twice is charged once.
func (d *Decision) gather(s *Snapshot, req *policy.Request) {
	cost := max(req.Cost, 1)
	for i := range d.matcher.Matches {
		match := &d.matcher.Matches[i]
		if match.Deny {
			continue
		}
		g := d.group(s.Backends[match.Rule.Policy.Index])
		if g.has(match.Key) {
			continue
		}
		g.rules = append(g.rules, match.Rule)
		g.op.Checks = append(g.op.Checks, Check{
			Key: match.Key, Limit: match.Rule.Limit, Window: match.Rule.Window, Cost: cost,
			Shadow: match.Rule.Policy.Mode == v1alpha1.ModeShadow,
		})
	}
}

func (d *Decision) group(backend *Backend) *group {
	for i := range d.groups {
		if d.groups[i].backend == backend {
			return &d.groups[i]
		}
	}
	if len(d.groups) < cap(d.groups) {
		d.groups = d.groups[:len(d.groups)+1]
	} else {
		d.groups = append(d.groups, group{})
	}
	g := &d.groups[len(d.groups)-1]
	g.reset()
	g.backend = backend
	return g
}

func (g *group) has(key string) bool {
	for i := range g.op.Checks {
		if g.op.Checks[i].Key == key {
			return true
		}
	}
	return false
}

// charge decides one backend's part, within its budget.
func (l *Limiter) charge(ctx context.Context, g *group, batch []*Op) {
	l.do(ctx, g, Charge, batch)
	if g.op.Err == nil || l.fallback == nil || g.hasMode(v1alpha1.FailureDeny) || !g.hasMode(v1alpha1.FailureLocalFallback) {
		return
	}
	g.failed = g.op.Err
	for i, rule := range g.rules {
		if rule.Policy.FailureMode == v1alpha1.FailureAllow {
			g.op.Checks[i].Shadow = true
		}
	}
	l.fallback.Do(ctx, batch)
}

func (l *Limiter) do(ctx context.Context, g *group, kind Kind, batch []*Op) {
	g.op.Kind = kind
	batch[0] = &g.op
	ctx, cancel := context.WithTimeout(ctx, g.backend.Budget)
	g.backend.Store.Do(ctx, batch)
	cancel()
	if g.op.Err != nil && g.failed == nil {
		l.observer.StoreFailed(g.backend, g.op.Err)
	}
}

func (g *group) hasMode(mode v1alpha1.FailureMode) bool {
	for _, rule := range g.rules {
		if rule.Policy.FailureMode == mode {
			return true
		}
	}
	return false
}

// chargeSeveral decides over several backends. It looks at all of them first;
// if one denies, the attempt is recorded there and nobody else is charged.
// Otherwise all are charged, and takeBack mends what is denied in that gap.
func (l *Limiter) chargeSeveral(ctx context.Context, groups []group) {
	l.each(ctx, groups, Look)
	refused := false
	for i := range groups {
		refused = refused || groups[i].op.Err == nil && groups[i].op.Denied
	}
	var charged sync.WaitGroup
	for i := range groups {
		g := &groups[i]
		if refused && !g.op.Denied {
			continue
		}
		charged.Go(func() { l.charge(ctx, g, make([]*Op, 1)) })
	}
	charged.Wait()
}

func (l *Limiter) each(ctx context.Context, groups []group, kind Kind) {
	var done sync.WaitGroup
	for i := range groups {
		done.Go(func() { l.do(ctx, &groups[i], kind, make([]*Op, 1)) })
	}
	done.Wait()
}

// settle turns the operations' results into the outcome and the quotas.
func (d *Decision) settle() {
	for i := range d.groups {
		g := &d.groups[i]
		for j, rule := range g.rules {
			if g.op.Err != nil {
				d.settleFailed(rule)
			} else {
				d.settleCheck(rule, &g.op.Checks[j])
			}
		}
	}
	if d.Outcome == Unavailable {
		d.RetryAfter = retryUnavailable
	}
}

func (d *Decision) settleFailed(rule *policy.Rule) {
	if rule.Policy.FailureMode == v1alpha1.FailureDeny && rule.Policy.Mode == v1alpha1.ModeEnforce && d.Outcome == Allowed {
		d.Outcome, d.Cause = Unavailable, rule
	}
}

func (d *Decision) settleCheck(rule *policy.Rule, c *Check) {
	if c.Shadow {
		return
	}
	q := Quota{Rule: rule, Remaining: c.Remaining(), Reset: c.End, Wait: seconds(c.Left), Over: c.Over}
	d.Quotas = append(d.Quotas, q)
	if q.Over && (d.Outcome != Denied || q.Wait > d.RetryAfter) {
		d.Outcome, d.Cause, d.RetryAfter = Denied, rule, q.Wait
	}
}

// seconds rounds nanoseconds up to whole seconds, at least one.
func seconds(left int64) int64 {
	return max(1, (left+int64(time.Second)-1)/int64(time.Second))
}

// takeBack returns what was charged for a request that is refused after all.
// An operation that denied has charged nothing.
func (l *Limiter) takeBack(ctx context.Context, d *Decision) {
	if d.Outcome == Allowed || len(d.groups) < 2 {
		return
	}
	for i := range d.groups {
		g := &d.groups[i]
		if g.op.Err != nil || g.op.Denied || g.op.Kind != Charge {
			continue
		}
		// The caller may be gone; what was charged must be given back all the same.
		returned := Op{Kind: Refund, Checks: append([]Check(nil), g.op.Checks...)}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.backend.Budget)
		store := g.backend.Store
		if g.failed != nil {
			store = l.fallback
		}
		store.Do(ctx, []*Op{&returned})
		cancel()
		d.refunded(g, &returned)
	}
}

// refunded corrects the quotas that a caller is shown.
func (d *Decision) refunded(g *group, returned *Op) {
	if returned.Err != nil {
		return
	}
	for i, rule := range g.rules {
		for j := range d.Quotas {
			if d.Quotas[j].Rule == rule {
				d.Quotas[j].Remaining = returned.Checks[i].Remaining()
			}
		}
	}
}

// observeOutcome tells what came of each rule.
func (l *Limiter) observeOutcome(d *Decision) {
	for i := range d.groups {
		g := &d.groups[i]
		for j, rule := range g.rules {
			l.observer.Decided(rule, g.outcome(j))
		}
	}
}

func (g *group) outcome(check int) RuleOutcome {
	c := &g.op.Checks[check]
	switch {
	case g.op.Err != nil || g.failed != nil:
		return OutcomeError
	case c.Over && c.Shadow:
		return OutcomeShadowDenied
	case c.Over:
		return OutcomeDenied
	}
	return OutcomeAllowed
}

// KindOf names the kind of a store's failure, for a metric's label.
func KindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return "other"
}

var kinds = []struct {
	err  error
	name string
}{
	{ErrTimeout, "timeout"},
	{ErrUnreachable, "unreachable"},
	{ErrStale, "stale"},
	{ErrPoisoned, "poisoned"},
	{ErrOutOfMemory, "out_of_memory"},
	{ErrReadOnly, "read_only"},
	{ErrLoading, "loading"},
	{ErrDenied, "denied"},
	{ErrProtocol, "protocol"},
}
