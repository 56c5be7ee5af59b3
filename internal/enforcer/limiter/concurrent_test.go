package limiter_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// gap is a store that lets every look pass and denies every charge, as if someone
// always came in between.
type gap struct{}

func (gap) Do(_ context.Context, batch []*limiter.Op) {
	for _, op := range batch {
		op.Denied = op.Kind == limiter.Charge
		for i := range op.Checks {
			op.Checks[i].Over, op.Checks[i].Left = op.Denied, int64(time.Minute)
		}
	}
}

// gate holds back operations of one kind until it opens.
type gate struct {
	limiter.Store
	kind limiter.Kind
	open chan struct{}
}

func (g *gate) Do(ctx context.Context, batch []*limiter.Op) {
	if batch[0].Kind == g.kind {
		<-g.open
	}
	g.Store.Do(ctx, batch)
}

func TestCloseWaitsForRefunds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &gate{newClock().store(), limiter.Refund, make(chan struct{})}
		l := start(t, limiter.Options{}, counted{"a", oneRule("a", "5", ""), a}, counted{"b", oneRule("b", "5", ""), gap{}})
		want(t, "outcome, which waits for no refund", decide(l, get("bob")).Outcome, limiter.Denied)
		want(t, "charged before the refund", admitted(a.Store, "rl:{shop/a}:shop/a/a:60:"), int64(1))

		var closed atomic.Bool
		go func() {
			l.Close()
			closed.Store(true)
		}()
		synctest.Wait()
		want(t, "closed before the refund", closed.Load(), false)
		close(a.open)
		synctest.Wait()
		want(t, "closed after the refund", closed.Load(), true)
		want(t, "charged after the refund", admitted(a.Store, "rl:{shop/a}:shop/a/a:60:"), int64(0))
	})
}

func TestRefundsUnderWayAreBounded(t *testing.T) {
	const most, decisions = 256, 300
	synctest.Test(t, func(t *testing.T) {
		notes, a := &diary{}, &gate{newClock().store(), limiter.Refund, make(chan struct{})}
		l := start(t, limiter.Options{Observer: notes}, counted{"a", oneRule("a", "1000", ""), a}, counted{"b", oneRule("b", "5", ""), gap{}})
		for range decisions {
			decide(l, get("bob"))
		}
		close(a.open)
		l.Close()
		want(t, "lost", notes.notes["of-a lost"], decisions-most)
		want(t, "charged", admitted(a.Store, "rl:{shop/a}:shop/a/a:60:"), int64(decisions-most))
	})
}

// hung is a store that never answers.
type hung struct{ asked time.Duration }

func (h *hung) Do(ctx context.Context, batch []*limiter.Op) {
	begin := time.Now()
	<-ctx.Done()
	h.asked = time.Since(begin)
	for _, op := range batch {
		op.Err = limiter.ErrTimeout
	}
}

func TestHungStoresCostTheBudget(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		reason                 string
		budget, callers, asked time.Duration
	}{
		{"a caller without deadline waits for the budget", 4 * second, 0, 4 * second},
		{"a caller with more time waits for the budget", 4 * second, 60 * second, 4 * second},
		{"a caller with less time gets the policy's answer before its end", 4 * second, 2 * second, 2*second - 2*second/8},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &hung{}
				s := snapshot(t, counted{"p", oneRule("r", "9", deny), store})
				s.Backends[0].Budget = c.budget
				l := limiter.New(limiter.Options{})
				l.Swap(s)
				ctx := t.Context()
				if c.callers > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.callers)
					defer cancel()
				}
				begin, req := time.Now(), get("bob")
				var d limiter.Decision
				l.Decide(ctx, &req, &d)
				want(t, "decision", resultOf(&d), result{limiter.Unavailable, "r", 1, nil})
				want(t, "asked for", store.asked, c.asked)
				want(t, "decided after", time.Since(begin), c.asked)
			})
		})
	}
}

// TestBackendsAreAskedAtTheSameTime has two that hang.
func TestBackendsAreAskedAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := snapshot(t, counted{"a", oneRule("a", "9", allow), &hung{}}, counted{"b", oneRule("b", "9", allow), &hung{}})
		for _, b := range s.Backends {
			b.Budget = time.Second
		}
		l := limiter.New(limiter.Options{})
		l.Swap(s)
		begin := time.Now()
		want(t, "decision", decide(l, get("bob")), result{})
		want(t, "decided after", time.Since(begin), time.Second)
	})
}

// diaries are an observer that begins a new diary with each snapshot.
type diaries []*diary

func (d *diaries) Observe(*limiter.Snapshot) limiter.Recorder {
	*d = append(*d, &diary{})
	return (*d)[len(*d)-1]
}

func TestDecisionsEndByTheSnapshotThatTheyBeganWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gate{newClock().store(), limiter.Charge, make(chan struct{})}
		notes := &diaries{}
		l := start(t, limiter.Options{Observer: notes}, counted{"p", oneRule("before", "1", ""), store})
		var got result
		go func() { got = decide(l, get("bob")) }()
		synctest.Wait()
		l.Swap(snapshot(t, counted{"p", oneRule("after", "0", ""), store}))
		close(store.open)
		synctest.Wait()
		want(t, "decision that began before", got, result{Quotas: []string{"before 0"}})
		want(t, "decision that began after", decide(l, get("bob")), result{limiter.Denied, "after", 60, []string{"after 0!"}})
		want(t, "notes of the snapshot before", (*notes)[0].notes, map[string]int{"before admitted": 1})
		want(t, "notes of the snapshot after", (*notes)[1].notes, map[string]int{"after denied": 1, "refused 2": 1})
	})
}

// TestSwapsLoseNoCount swaps while many decide: the counter and the limit are the
// same before and after.
func TestSwapsLoseNoCount(t *testing.T) {
	const limit, callers, each = 100, 8, 50
	store := newClock().store()
	one := counted{"p", oneRule("r", "100", ""), store}
	l := start(t, limiter.Options{Observer: &diary{}}, one)
	var passed atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		hammer(callers, each, func() {
			if decide(l, get("bob")).Outcome == limiter.Allowed {
				passed.Add(1)
			}
		})
	}()
	other := counted{"other", oneRule("o", "1000", ""), store}
	for i := 0; ; i++ {
		select {
		case <-ended:
			want(t, "passed", passed.Load(), int64(limit))
			return
		default:
			l.Swap(snapshot(t, []counted{one, other}[:1+i%2]...))
		}
	}
}

// TestBackendsAgree has two backends that many callers charge at once: whatever
// came in between, each shows what was let through, and that is within the limits.
func TestBackendsAgree(t *testing.T) {
	const tighter = 60
	now := newClock()
	a, b := now.store(), now.store()
	l := start(t, limiter.Options{}, counted{"a", oneRule("a", "90", ""), a}, counted{"b", oneRule("b", "60", ""), b})
	var passed atomic.Int64
	hammer(8, 40, func() {
		if decide(l, get("bob")).Outcome == limiter.Allowed {
			passed.Add(1)
		}
	})
	l.Close()
	if n := passed.Load(); n < 1 || n > tighter {
		t.Errorf("%d pass, want some and %d at most", n, tighter)
	}
	want(t, "charged to a", admitted(a, "rl:{shop/a}:shop/a/a:60:"), passed.Load())
	want(t, "charged to b", admitted(b, "rl:{shop/b}:shop/b/b:60:"), passed.Load())
}

// hammer calls f each times from every of so many goroutines.
func hammer(goroutines, each int, f func()) {
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				f()
			}
		})
	}
	all.Wait()
}
