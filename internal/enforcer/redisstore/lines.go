package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

const (
	// maxLines is how many calls to one node are under way at most.
	maxLines = 4
	// maxChecks is how many counters one call decides at most. The server does
	// nothing else meanwhile: that many take it a third of a millisecond.
	maxChecks = 128
	// slow is the age of a call that makes a further line worth while: later ones
	// must not wait for a lost packet.
	slow = 5 * time.Millisecond
	// maxQueue is how many operations wait for a line at most, and half of it how
	// many of one policy.
	maxQueue = 4096
	// sweepEvery is how often those whose time is up are looked for.
	sweepEvery = 5 * time.Millisecond
)

// lines gather concurrent operations for one node: while a call is under way,
// what comes waits and goes together in the next. An operation that finds no call
// under way goes at once.
type lines struct {
	call     func(ctx context.Context, ops []*limiter.Op)
	pendings pendings

	mu     sync.Mutex
	queue  []*pending
	checks int            // in the queue
	queued map[string]int // by policy
	busy   int            // lines under way
	due    bool           // a further line is about to take from the queue
	open   [maxLines]line
	sweep  *time.Timer
	armed  bool
}

// line is a call under way.
type line struct {
	busy  bool
	since time.Time
	batch []*pending
	ops   []*limiter.Op
}

func newLines(call func(context.Context, []*limiter.Op)) *lines {
	l := &lines{call: call, queued: map[string]int{}}
	l.sweep = time.AfterFunc(time.Hour, l.expire)
	l.sweep.Stop()
	return l
}

// do carries out one operation until end, which is ctx's deadline.
func (l *lines) do(ctx context.Context, end time.Time, op *limiter.Op) {
	l.mu.Lock()
	if l.busy == 0 {
		at := l.take()
		l.mu.Unlock()
		l.alone(ctx, at, op)
		return
	}
	p := l.enqueue(end, op)
	l.mu.Unlock()
	if p != nil {
		p.await(op)
	}
}

// submit queues one operation; its caller must await it, unless it was refused:
// then nil comes back and op has its error.
func (l *lines) submit(end time.Time, op *limiter.Op) *pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enqueue(end, op)
}

// alone carries out an operation in its caller's goroutine.
func (l *lines) alone(ctx context.Context, at int, op *limiter.Op) {
	line := &l.open[at]
	line.ops = append(line.ops[:0], op)
	l.call(ctx, line.ops)
	line.ops[0] = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		go l.run(at)
		return
	}
	l.release(at)
}

// enqueue adds an operation to the queue, and opens a line where one is due.
func (l *lines) enqueue(end time.Time, op *limiter.Op) *pending {
	p := l.pendings.take(end, op)
	if len(l.queue) >= maxQueue || l.queued[p.policy] >= maxQueue/2 {
		p.recycle()
		op.Err = limiter.ErrOverloaded
		return nil
	}
	l.queue = append(l.queue, p)
	l.checks += len(op.Checks)
	l.queued[p.policy]++
	l.widen()
	if !l.armed {
		l.armed = true
		l.sweep.Reset(sweepEvery)
	}
	return p
}

// widen opens a further line when one is due.
func (l *lines) widen() {
	if !l.due && l.busy < maxLines && (l.busy == 0 || l.checks >= maxChecks || time.Since(l.oldest()) > slow) {
		l.due = true
		go l.run(l.take())
	}
}

// oldest is when the call under way began that has been so for longest.
func (l *lines) oldest() time.Time {
	var oldest time.Time
	for i := range l.open {
		if line := &l.open[i]; line.busy && (oldest.IsZero() || line.since.Before(oldest)) {
			oldest = line.since
		}
	}
	return oldest
}

// take occupies a line. The caller knows that one is free.
func (l *lines) take() int {
	at := 0
	for l.open[at].busy {
		at++
	}
	l.open[at].busy, l.open[at].since = true, time.Now()
	l.busy++
	return at
}

func (l *lines) release(at int) {
	l.open[at].busy = false
	l.busy--
}

// run makes calls on a line until nothing waits.
func (l *lines) run(at int) {
	line := &l.open[at]
	for {
		l.mu.Lock()
		l.due = false
		end := l.gather(line)
		if len(line.batch) == 0 {
			l.release(at)
			l.mu.Unlock()
			return
		}
		line.since = time.Now()
		l.mu.Unlock()

		ctx, cancel := context.WithDeadline(context.Background(), end)
		l.call(ctx, line.ops)
		cancel()

		l.mu.Lock()
		batch := line.batch
		line.batch = line.batch[:0]
		l.mu.Unlock()
		for _, p := range batch {
			p.answer()
		}
	}
}

// gather moves the head of the queue to a line, and returns the latest end.
func (l *lines) gather(line *line) (end time.Time) {
	line.batch, line.ops = line.batch[:0], line.ops[:0]
	checks, taken := 0, 0
	for _, p := range l.queue {
		if checks > 0 && checks+len(p.op.Checks) > maxChecks {
			break
		}
		taken++
		l.leave(p)
		if p.state.Load() == expired {
			continue
		}
		checks += len(p.op.Checks)
		if p.end.After(end) {
			end = p.end
		}
		line.batch = append(line.batch, p)
		line.ops = append(line.ops, &p.op)
	}
	rest := copy(l.queue, l.queue[taken:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	return end
}

// leave takes an operation out of the queue's sums.
func (l *lines) leave(p *pending) {
	l.checks -= len(p.op.Checks)
	if l.queued[p.policy]--; l.queued[p.policy] == 0 {
		delete(l.queued, p.policy)
	}
}

// expire answers those whose time is up, and opens a line where the calls under
// way are slow. It comes again while there is anybody waiting.
func (l *lines) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, left := time.Now(), len(l.queue)
	for _, p := range l.queue {
		if !p.end.After(now) {
			p.expire()
		}
	}
	for i := range l.open {
		for _, p := range l.open[i].batch {
			left++
			if !p.end.After(now) {
				p.expire()
			}
		}
	}
	if len(l.queue) > 0 {
		l.widen()
	}
	l.armed = left > 0
	if l.armed {
		l.sweep.Reset(sweepEvery)
	}
}
