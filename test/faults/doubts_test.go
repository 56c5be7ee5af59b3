//go:build faults

package faults

import (
	"sync/atomic"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// doubts counts the load's requests that failed and that Redis may have counted
// all the same: no answer came, and nobody knows.
type doubts struct{ atomic.Int64 }

// Observe implements limiter.Observer.
func (d *doubts) Observe(*limiter.Snapshot) limiter.Recorder { return d }

// Failed implements limiter.Recorder.
func (d *doubts) Failed(b *limiter.Backend, kind string) {
	isInDoubt := kind == limiter.KindOf(limiter.ErrTimeout) || kind == limiter.KindOf(limiter.ErrUnreachable)
	if b.Name.Name == "load" && isInDoubt {
		d.Add(1)
	}
}

func (*doubts) Decided(*policy.Rule, limiter.Verdict) {}
func (*doubts) Exempt(*policy.Policy)                 {}
func (*doubts) Missing(*policy.Rule)                  {}
func (*doubts) ForwardedIgnored(*policy.Policy)       {}
func (*doubts) FellBack(*policy.Rule)                 {}
func (*doubts) RefundLost(*limiter.Backend)           {}
func (*doubts) Refused(limiter.Outcome)               {}
func (*doubts) Skipped(*policy.Rule)                  {}
