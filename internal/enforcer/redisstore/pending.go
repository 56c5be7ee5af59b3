package redisstore

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// pending is an operation that waits for its turn or for its answer. It is a copy:
// the caller may have given up, and reuse its own, when the answer comes.
type pending struct {
	op     limiter.Op
	end    time.Time
	policy string
	state  atomic.Int32
	ready  chan struct{} // holds one
	from   *pendings
}

// The states of a pending. Only one of the two ends is reached.
const (
	waiting int32 = iota
	answered
	expired
)

// pendings are those that can be used again.
type pendings struct{ pool sync.Pool }

func (ps *pendings) take(end time.Time, op *limiter.Op) *pending {
	p, ok := ps.pool.Get().(*pending)
	if !ok {
		p = &pending{from: ps, ready: make(chan struct{}, 1)}
	}
	p.op.Kind, p.op.Checks = op.Kind, append(p.op.Checks[:0], op.Checks...)
	p.op.Denied, p.op.Err = false, nil
	p.end, p.policy = end, policyOf(op)
	p.state.Store(waiting)
	return p
}

// policyOf names the policy that a place in the queue is charged to: that of the
// first counter. See policy.Rule for the key's form.
func policyOf(op *limiter.Op) string {
	if len(op.Checks) == 0 {
		return ""
	}
	_, rest, _ := strings.Cut(op.Checks[0].Key, "}:")
	if slash := strings.LastIndexByte(rest, '/'); slash >= 0 {
		return rest[:slash]
	}
	return rest
}

// recycle lets p be used for another operation.
func (p *pending) recycle() {
	clear(p.op.Checks)
	p.policy = ""
	p.from.pool.Put(p)
}

// answer hands the result over, if somebody still waits for it.
func (p *pending) answer() {
	if p.state.CompareAndSwap(waiting, answered) {
		p.ready <- struct{}{}
	}
}

// expire tells the caller that the time is up. The answer, if one comes, is
// nobody's, and p is not used again: both sides may still look at it.
func (p *pending) expire() {
	if p.state.CompareAndSwap(waiting, expired) {
		p.ready <- struct{}{}
	}
}

// await waits for the result and copies it to op.
func (p *pending) await(op *limiter.Op) {
	<-p.ready
	if p.state.Load() == expired {
		op.Err = limiter.ErrTimeout
		return
	}
	copy(op.Checks, p.op.Checks)
	op.Denied, op.Err = p.op.Denied, p.op.Err
	p.recycle()
}
