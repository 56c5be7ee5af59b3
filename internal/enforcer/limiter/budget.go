package limiter

import (
	"context"
	"sync"
	"time"
)

// marginShift: 1/8 of what a caller's own deadline leaves is kept back, so that
// the policy's failure mode applies and not the caller's.
const marginShift = 3

// deadline is when a decision that began at start must have a backend's answer.
func deadline(ctx context.Context, start time.Time, allowed time.Duration) time.Time {
	if end, ok := ctx.Deadline(); ok {
		left := end.Sub(start)
		allowed = min(allowed, left-left>>marginShift)
	}
	return start.Add(allowed)
}

// budget is context.WithDeadline at the price of one allocation for a store that
// looks at the deadline alone: the timer and the channel are made when Done is
// first asked for.
type budget struct {
	context.Context
	end time.Time

	mu     sync.Mutex
	inner  context.Context
	cancel context.CancelFunc
}

func newBudget(end time.Time) *budget {
	return &budget{Context: context.Background(), end: end}
}

// Deadline implements context.Context.
func (b *budget) Deadline() (time.Time, bool) { return b.end, true }

// Done implements context.Context.
func (b *budget) Done() <-chan struct{} { return b.full().Done() }

// Err implements context.Context.
func (b *budget) Err() error {
	b.mu.Lock()
	inner := b.inner
	b.mu.Unlock()
	if inner != nil {
		return inner.Err()
	}
	if !time.Now().Before(b.end) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context. Once there is a full context it answers, so
// that contexts derived from b attach to it without a goroutine.
func (b *budget) Value(key any) any {
	b.mu.Lock()
	inner := b.inner
	b.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return b.Context.Value(key)
}

func (b *budget) full() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner == nil {
		b.inner, b.cancel = context.WithDeadline(b.Context, b.end)
	}
	return b.inner
}

// release ends the budget: it frees what Done made.
func (b *budget) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		b.cancel()
	}
}
