package limiter

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// Options are a Limiter's surroundings.
type Options struct {
	// Fallback counts for policies with failureMode LocalFallback while their
	// store cannot answer. It answers at once, from this process's memory.
	// Defaults to none: LocalFallback is then Allow.
	Fallback Store
	// Share is the part of a rule's limit that Fallback admits here. Defaults to
	// the whole limit.
	Share func(*policy.Rule) int64
	// Observer is told what is decided. Defaults to nobody.
	Observer Observer
}

// Limiter decides requests by the Snapshot that was last swapped in. It is safe
// for concurrent use.
type Limiter struct {
	fallback Store
	share    func(*policy.Rule) int64
	observer Observer
	current  atomic.Pointer[force]
	refunds  refunds
	swap     sync.Mutex
}

// force is a Snapshot in force, with who is told about it.
type force struct {
	*Snapshot
	recorder Recorder
}

var _ Decider = (*Limiter)(nil)

// New returns a Limiter that allows everything until the first Swap.
func New(opts Options) *Limiter {
	l := &Limiter{fallback: opts.Fallback, share: opts.Share, observer: opts.Observer, refunds: newRefunds()}
	if l.share == nil {
		l.share = func(rule *policy.Rule) int64 { return rule.Limit }
	}
	if l.observer == nil {
		l.observer = noObserver{}
	}
	l.current.Store(&force{Snapshot: &Snapshot{Set: policy.NewSet(nil)}, recorder: noRecorder{}})
	return l
}

// Swap puts s in force. Decisions under way end by the Snapshot that they began
// with.
func (l *Limiter) Swap(s *Snapshot) {
	l.swap.Lock()
	defer l.swap.Unlock()
	l.current.Store(&force{Snapshot: s, recorder: l.observer.Observe(s)})
}

// Close waits until what is being given back has been. Call it when no Decide is
// running or to come.
func (l *Limiter) Close() { l.refunds.wait() }

// Decide decides a request within the budgets of the backends that it needs, and
// within ctx's deadline.
func (l *Limiter) Decide(ctx context.Context, req *policy.Request, d *Decision) {
	f := l.current.Load()
	d.begin()
	f.Set.Match(req, &d.matcher)
	f.recordMatches(req, &d.matcher)
	if rule := keyMissing(d.matcher.Matches); rule != nil {
		d.Outcome, d.Cause = KeyMissing, rule
		f.recorder.Refused(KeyMissing)
		return
	}
	d.plan(f.Backends, req)
	if len(d.calls) == 0 {
		return
	}
	l.charge(ctx, f, d)
	d.settle(f.recorder)
}

// keyMissing finds a rule that refuses a request because of its missing key.
func keyMissing(matches []policy.Match) *policy.Rule {
	for i := range matches {
		if matches[i].Deny && !isShadow(matches[i].Rule) {
			return matches[i].Rule
		}
	}
	return nil
}

func isShadow(rule *policy.Rule) bool { return rule.Policy.Mode == v1alpha1.ModeShadow }

// recordMatches tells what matching alone found out.
func (f *force) recordMatches(req *policy.Request, m *policy.Matcher) {
	for _, p := range m.Exempt {
		f.recorder.Exempt(p)
	}
	for _, rule := range m.Skipped {
		f.recorder.Skipped(rule)
	}
	var last *policy.Policy
	for i := range m.Matches {
		match := &m.Matches[i]
		if match.Missing {
			f.recorder.Missing(match.Rule)
		}
		switch {
		case match.Deny && isShadow(match.Rule):
			f.recorder.Decided(match.Rule, ShadowDenials)
		case match.Deny:
			f.recorder.Decided(match.Rule, Denials)
		}
		if m.ForwardedIgnored && match.Rule.Policy != last {
			last = match.Rule.Policy
			if m.ForwardedIgnoredBy(req, last) {
				f.recorder.ForwardedIgnored(last)
			}
		}
	}
}
