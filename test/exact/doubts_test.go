//go:build exact

package exact

import (
	"sync/atomic"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// doubts counts what failed and may be charged all the same: it was sent, or may
// have been, and no answer came. What the circuit breaker keeps back, and what a
// server refuses, is charged nowhere.
type doubts struct{ atomic.Int64 }

// Observe implements limiter.Observer.
func (d *doubts) Observe(*limiter.Snapshot) limiter.Recorder { return d }

// Failed implements limiter.Recorder.
func (d *doubts) Failed(_ *limiter.Backend, kind string) {
	if kind == limiter.KindOf(limiter.ErrTimeout) || kind == limiter.KindOf(limiter.ErrUnreachable) {
		d.Add(1)
	}
}

func (*doubts) Decided(*policy.Rule, limiter.Verdict) {}
func (*doubts) Exempt(*policy.Policy)                 {}
func (*doubts) Missing(*policy.Rule)                  {}
func (*doubts) Skipped(*policy.Rule)                  {}
func (*doubts) ForwardedIgnored(*policy.Policy)       {}
func (*doubts) FellBack(*policy.Rule)                 {}
func (*doubts) RefundLost(*limiter.Backend)           {}
func (*doubts) Refused(limiter.Outcome)               {}
