package limiter

import (
	"context"
	"sync"
)

// maxRefunds bounds how many refunds are under way. What comes on top is lost,
// which is safe: it denies more, never less.
const maxRefunds = 256

// refunds gives back in the background what refused requests were charged, so
// that a decision ends within its budget. It is rare: only what turns up between
// the look at several backends and the charge is given back.
type refunds struct {
	slots chan struct{}
	under *sync.WaitGroup
}

func newRefunds() refunds {
	return refunds{slots: make(chan struct{}, maxRefunds), under: new(sync.WaitGroup)}
}

// send gives op back to b with a budget of its own.
func (r refunds) send(b *Backend, op *Op, recorder Recorder) {
	select {
	case r.slots <- struct{}{}:
	default:
		recorder.RefundLost(b)
		return
	}
	r.under.Go(func() {
		defer func() { <-r.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), b.Budget)
		defer cancel()
		if b.Store.Do(ctx, []*Op{op}); op.Err != nil {
			recorder.RefundLost(b)
		}
	})
}

// wait returns when nothing is under way.
func (r refunds) wait() { r.under.Wait() }
