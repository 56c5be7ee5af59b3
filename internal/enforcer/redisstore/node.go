package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

const (
	// maxStale is how often an operation may be stale before it fails: once for a
	// clock that was never set, once for the turn of a window, and some.
	maxStale = 5
	// maxMoving is how often a server that is changing places is asked again, each
	// time after a pause.
	maxMoving = 2
	pause     = 5 * time.Millisecond
)

// node is one server, or what passes for one: a primary behind Sentinels.
type node struct {
	*lines
	executor executor
	now      func() time.Duration // names windows
	budget   time.Duration
	observer Observer
	breaker  *gobreaker.TwoStepCircuitBreaker[any]
	// offset is Redis's time minus now, in nanoseconds. The first operation
	// learns it by being stale.
	offset atomic.Int64
}

// executor sends calls of the script, all in one round trip, and fills in reply
// or err of each.
type executor interface {
	// group shares operations out over calls; the keys of one call are in one slot.
	group(ops []*limiter.Op) []*call
	execute(ctx context.Context, calls []*call)
}

func newNode(e executor, now func() time.Duration, budget time.Duration, observer Observer) *node {
	n := &node{executor: e, now: now, budget: budget, observer: observer, breaker: newBreaker()}
	n.lines = newLines(n.carryOut)
	return n
}

// carryOut decides operations, unless the node has failed too often of late.
func (n *node) carryOut(ctx context.Context, ops []*limiter.Op) {
	done, err := n.breaker.Allow()
	if err != nil {
		fail(ops, limiter.ErrCircuitOpen)
		return
	}
	started := time.Now()
	err = n.decide(ctx, ops, n.executor.group)
	if errors.Is(err, limiter.ErrTimeout) && time.Since(started) < n.budget-n.budget/8 {
		err = errHurried
	}
	done(err)
}

// decide makes calls until each operation is decided or has failed. It returns
// what kept the node from answering.
func (n *node) decide(ctx context.Context, ops []*limiter.Op, group func([]*limiter.Op) []*call) error {
	stale, moving := 0, 0
	for {
		r := n.once(ctx, group(ops))
		for _, op := range r.split {
			n.oneByOne(ctx, op)
		}
		switch {
		case len(r.again) == 0:
			return r.failure
		case r.moving == nil:
			if stale++; stale == maxStale {
				fail(r.again, limiter.ErrStale)
				return r.failure
			}
		default:
			if moving++; moving > maxMoving || !wait(ctx, pause) {
				fail(r.again, classify(ctx, r.moving))
				return r.failure
			}
		}
		ops = r.again
	}
}

// wait waits, unless that would take until ctx's deadline.
func wait(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= 2*d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// trip is what came out of a round trip.
type trip struct {
	// again are the operations that the server left alone: those whose window was
	// misnamed, and those that it can't decide at the moment.
	again []*limiter.Op
	// moving says why not at the moment; nil if windows were misnamed only.
	moving error
	// split are those whose keys are on two servers at the moment.
	split []*limiter.Op
	// failure is what kept the server from answering. Its operations have failed.
	failure error
}

// once makes one round trip.
func (n *node) once(ctx context.Context, calls []*call) (t trip) {
	sent := n.now()
	for _, c := range calls {
		c.encode(int64((sent + time.Duration(n.offset.Load())) / time.Second))
	}
	began := time.Now()
	n.executor.execute(ctx, calls)
	took, received := time.Since(began), n.now()
	for _, c := range calls {
		err := n.finish(ctx, c, &t)
		if err == nil {
			n.learn(c.reply, sent, received)
		}
		n.observer.Called(took, err)
		c.release()
	}
	return t
}

// finish turns the answer to a call into results.
func (n *node) finish(ctx context.Context, c *call, t *trip) (err error) {
	switch {
	case isSplit(c.err) && !c.bare:
		t.split = append(t.split, c.ops...)
		return classify(ctx, c.err)
	case isMoving(c.err):
		t.again, t.moving = append(t.again, c.ops...), c.err
		return classify(ctx, c.err)
	case c.err != nil:
		err = classify(ctx, c.err)
	default:
		t.again, err = c.decode(t.again)
	}
	if err != nil {
		t.failure = err
		fail(c.ops, err)
	}
	return err
}

// learn takes over what a reply tells of the server's clock, and of counters that
// it had to repair.
func (n *node) learn(reply []int64, sent, received time.Duration) {
	redisTime := time.Duration(reply[0])*time.Second + time.Duration(reply[1])*time.Microsecond
	n.offset.Store(int64(redisTime - (sent+received)/2))
	if repaired := reply[2]; repaired > 0 {
		n.observer.Repaired(repaired)
	}
}
