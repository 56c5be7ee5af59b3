package limiter

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// unavailableRetry is the Retry-After of an Unavailable: nobody knows when a
// store will answer again, and asking is cheap.
const unavailableRetry = 1

// charge carries out the plan. One call is one trip. With several, all are looked
// at first; where a look denies, the attempt is recorded there, and the
// others are charged only if that did not refuse the request after all. What a
// request is refused for in the gap is given back.
func (l *Limiter) charge(ctx context.Context, f *force, d *Decision) {
	start := time.Now()
	if len(d.calls) > 1 {
		if !d.recall() {
			l.each(ctx, f, d, start, Look, planned)
		}
		l.each(ctx, f, d, start, Charge, suspect)
	}
	if !d.isRefused() {
		l.each(ctx, f, d, start, Charge, planned)
	}
	if !d.isRefused() {
		return
	}
	for i := range d.calls {
		if d.calls[i].stage == charged {
			l.giveBack(f, &d.calls[i])
		}
	}
}

// recall finds calls that are known to deny. If there is one, nobody else needs to
// be asked.
func (d *Decision) recall() bool {
	found := false
	for i := range d.calls {
		c := &d.calls[i]
		if known, ok := c.store.(Recaller); ok && known.Recall(&c.op) {
			c.stage, found = suspect, true
		}
	}
	if !found {
		return false
	}
	for i := range d.calls {
		if c := &d.calls[i]; c.stage == planned {
			c.setUnknown(true)
		}
	}
	return true
}

// isRefused tells that what is known so far refuses the request.
func (d *Decision) isRefused() bool { return d.failed != nil || d.isDenied() }

func (d *Decision) isDenied() bool {
	return slices.ContainsFunc(d.calls, func(c call) bool { return c.stage == denied })
}

// each carries out one kind of operation on all calls of one stage, at the same
// time.
func (l *Limiter) each(ctx context.Context, f *force, d *Decision, start time.Time, kind Kind, at stage) {
	var parallel *sync.WaitGroup
	var mine *call
	for i := range d.calls {
		c := &d.calls[i]
		if c.stage != at {
			continue
		}
		if mine == nil {
			mine = c
			continue
		}
		if parallel == nil {
			parallel = new(sync.WaitGroup)
		}
		parallel.Go(func() { c.do(deadline(ctx, start, c.backend.Budget), kind) })
	}
	if mine == nil {
		return
	}
	mine.do(deadline(ctx, start, mine.backend.Budget), kind)
	if parallel != nil {
		parallel.Wait()
	}
	for i := range d.calls {
		if c := &d.calls[i]; c.stage == at && c.op.Err != nil {
			l.fail(ctx, f, d, c)
		}
	}
}

// fail applies the failure modes of a call's policies. What falls back is charged
// in memory at once.
func (l *Limiter) fail(ctx context.Context, f *force, d *Decision, c *call) {
	f.recorder.Failed(c.backend, failureKind(ctx, c.op.Err))
	c.stage = dropped
	kept := 0
	for i, rule := range c.rules {
		f.recorder.Decided(rule, Failures)
		switch rule.Policy.FailureMode {
		case v1alpha1.FailureDeny:
			if d.failed == nil && !isShadow(rule) {
				d.failed = rule
			}
		case v1alpha1.FailureLocalFallback:
			c.rules[kept], c.op.Checks[kept] = rule, c.op.Checks[i]
			c.op.Checks[kept].Limit = l.share(rule)
			kept++
		}
	}
	c.rules, c.op.Checks = c.rules[:kept], c.op.Checks[:kept]
	if kept == 0 || l.fallback == nil {
		return
	}
	c.store, c.local = l.fallback, true
	c.do(time.Now().Add(c.backend.Budget), Charge)
	if c.stage == dropped {
		return
	}
	for _, rule := range c.rules {
		f.recorder.FellBack(rule)
	}
}

// giveBack returns what a call charged: in memory at once, elsewhere behind the
// answer's back.
func (l *Limiter) giveBack(f *force, c *call) {
	refund := make([]Check, 0, len(c.op.Checks))
	for i := range c.op.Checks {
		check := &c.op.Checks[i]
		if check.Over {
			continue // a Shadow counter: only the attempt was recorded
		}
		refund = append(refund, *check)
		check.Admitted = max(0, check.Admitted-int64(min(check.Cost, uint64(check.Limit)+1)))
	}
	c.stage = returned
	if len(refund) == 0 {
		return
	}
	op := &Op{Kind: Refund, Checks: refund}
	if c.local {
		c.store.Do(context.Background(), []*Op{op})
		return
	}
	l.refunds.send(c.backend, op, f.recorder)
}

// settle turns what became of the calls into the outcome.
func (d *Decision) settle(r Recorder) {
	isDenied := d.isDenied()
	for i := range d.calls {
		c := &d.calls[i]
		if c.stage == dropped {
			continue
		}
		for j, rule := range c.rules {
			check := &c.op.Checks[j]
			if check.Unknown {
				continue
			}
			verdict(r, rule, c.stage, check)
			if !check.Shadow {
				d.addQuota(rule, check)
			}
		}
	}
	switch {
	case isDenied:
		d.Outcome = Denied
	case d.failed != nil:
		d.Outcome, d.Cause, d.RetryAfter = Unavailable, d.failed, unavailableRetry
		d.Quotas = d.Quotas[:0]
	default:
		return
	}
	r.Refused(d.Outcome)
}

// verdict tells what one rule made of the request, if it was asked to count it.
func verdict(r Recorder, rule *policy.Rule, at stage, check *Check) {
	switch {
	case at == planned:
	case check.Over && check.Shadow:
		r.Decided(rule, ShadowDenials)
	case check.Over:
		r.Decided(rule, Denials)
	case at == charged:
		r.Decided(rule, Admissions)
	}
}

// addQuota adds a rule's state. Among those that deny, the one with the longest
// wait becomes the cause.
func (d *Decision) addQuota(rule *policy.Rule, check *Check) {
	q := Quota{Rule: rule, Remaining: check.Remaining(), Reset: check.End, Wait: wholeSeconds(check.Left), Over: check.Over}
	at := len(d.Quotas)
	for at > 0 && d.Quotas[at-1].Rule.Index > rule.Index {
		at--
	}
	d.Quotas = slices.Insert(d.Quotas, at, q)
	if q.Over && q.Wait > d.RetryAfter {
		d.Cause, d.RetryAfter = rule, q.Wait
	}
}

// wholeSeconds rounds nanoseconds up, to 1 at least: who waits that long is in
// the next window.
func wholeSeconds(ns int64) int64 {
	return max(1, (ns+int64(time.Second)-1)/int64(time.Second))
}
