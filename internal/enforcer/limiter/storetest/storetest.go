// Package storetest is what every limiter.Store must do, as tests.
package storetest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// Window is so long that it does not turn during a test, in seconds.
const Window = 366 * 24 * 60 * 60

// Harness is a store under test.
type Harness struct {
	Store limiter.Store
	// Delete removes the counter of a check's key, as an operator would.
	Delete func(key string)
}

// Check makes a check of cost 1.
func Check(key string, limit int64) limiter.Check {
	return limiter.Check{Key: key, Limit: limit, Window: Window, Cost: 1}
}

// Do carries out one operation and fails the test on an error.
func Do(t testing.TB, s limiter.Store, kind limiter.Kind, checks ...limiter.Check) *limiter.Op {
	t.Helper()
	op := &limiter.Op{Kind: kind, Checks: checks}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s.Do(ctx, []*limiter.Op{op})
	if op.Err != nil {
		t.Fatalf("operation failed: %v", op.Err)
	}
	return op
}

// Run runs the suite; each test gets a harness of its own.
func Run(t *testing.T, start func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"three of five requests pass and remaining never is negative", countsDown},
		{"limit zero denies from the first request", blocks},
		{"a raised limit admits the difference and a lowered one denies", limitMoves},
		{"a request is charged to all rules or to none", allOrNothing},
		{"a shadow counter records and does not deny", shadow},
		{"a look changes nothing", looks},
		{"a refund stops at zero and creates nothing", refunds},
		{"a debit charges even when over", debits},
		{"attempts denied elsewhere are recorded and admit nothing", records},
		{"costs up to the largest number are exact", largeCosts},
		{"a deleted counter begins anew", deletes},
		{"a batch decides each request by itself", batches},
		{"concurrent requests admit exactly the limit", concurrent},
		{"the window's end lies ahead", windowEnd},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, start(t)) })
	}
}

func want(t *testing.T, op *limiter.Op, denied bool, admitted ...int64) {
	t.Helper()
	if op.Denied != denied {
		t.Errorf("denied %v, want %v", op.Denied, denied)
	}
	for i, n := range admitted {
		if op.Checks[i].Admitted != n {
			t.Errorf("counter %d: admitted %d, want %d", i, op.Checks[i].Admitted, n)
		}
	}
}

func countsDown(t *testing.T, h Harness) {
	for i, remaining := range []int64{2, 1, 0, 0, 0} {
		op := Do(t, h.Store, limiter.Charge, Check("k:", 3))
		if got := op.Checks[0].Remaining(); got != remaining || op.Denied != (i >= 3) {
			t.Errorf("request %d: remaining %d, denied %v", i+1, got, op.Denied)
		}
	}
}

func blocks(t *testing.T, h Harness) {
	want(t, Do(t, h.Store, limiter.Charge, Check("k:", 0)), true, 0)
	want(t, Do(t, h.Store, limiter.Look, Check("k:", 0)), true, 0)
}

func limitMoves(t *testing.T, h Harness) {
	admit := func(limit int64, times int) (admitted int) {
		for range times {
			if !Do(t, h.Store, limiter.Charge, Check("k:", limit)).Denied {
				admitted++
			}
		}
		return admitted
	}
	for _, step := range []struct {
		limit int64
		times int
		want  int
	}{{100, 105, 100}, {120, 50, 20}, {50, 10, 0}, {121, 10, 1}} {
		if got := admit(step.limit, step.times); got != step.want {
			t.Errorf("limit %d: %d of %d admitted, want %d", step.limit, got, step.times, step.want)
		}
	}
}

func allOrNothing(t *testing.T, h Harness) {
	for range 2 {
		Do(t, h.Store, limiter.Charge, Check("a:", 2), Check("b:", 100))
	}
	want(t, Do(t, h.Store, limiter.Charge, Check("a:", 2), Check("b:", 100)), true, 2, 2)
	want(t, Do(t, h.Store, limiter.Look, Check("a:", 2), Check("b:", 100)), true, 2, 2)
	want(t, Do(t, h.Store, limiter.Charge, Check("b:", 100)), false, 3)
}

func shadow(t *testing.T, h Harness) {
	s := Check("s:", 1)
	s.Shadow = true
	want(t, Do(t, h.Store, limiter.Charge, s, Check("e:", 5)), false, 1, 1)
	op := Do(t, h.Store, limiter.Charge, s, Check("e:", 5))
	want(t, op, false, 1, 2)
	if !op.Checks[0].Over {
		t.Error("the shadow counter is not over")
	}
}

func looks(t *testing.T, h Harness) {
	look := Check("k:", 2)
	look.Cost = 0
	want(t, Do(t, h.Store, limiter.Look, look), false, 0)
	Do(t, h.Store, limiter.Charge, Check("k:", 2))
	want(t, Do(t, h.Store, limiter.Look, look), false, 1)
	Do(t, h.Store, limiter.Charge, Check("k:", 2))
	want(t, Do(t, h.Store, limiter.Look, look), true, 2)
	want(t, Do(t, h.Store, limiter.Look, look), true, 2)
}

func refunds(t *testing.T, h Harness) {
	three := Check("k:", 5)
	three.Cost = 3
	want(t, Do(t, h.Store, limiter.Refund, three), false, 0)
	for range 2 {
		Do(t, h.Store, limiter.Charge, Check("k:", 5))
	}
	want(t, Do(t, h.Store, limiter.Refund, three), false, 0)
	for range 7 {
		Do(t, h.Store, limiter.Charge, Check("k:", 5))
	}
	want(t, Do(t, h.Store, limiter.Refund, three), false, 2)
	want(t, Do(t, h.Store, limiter.Look, Check("k:", 5)), false, 2)
}

func debits(t *testing.T, h Harness) {
	c := Check("k:", 5)
	c.Cost = 4
	want(t, Do(t, h.Store, limiter.Debit, c), false, 4)
	want(t, Do(t, h.Store, limiter.Debit, c), true, 8)
	want(t, Do(t, h.Store, limiter.Charge, Check("k:", 5)), true, 8)
}

func largeCosts(t *testing.T, h Harness) {
	c := Check("k:", v1alpha1.MaxLimit)
	c.Cost = math.MaxUint64
	for range 2000 {
		want(t, Do(t, h.Store, limiter.Charge, c), true, 0)
	}
	c.Cost = v1alpha1.MaxLimit - 1
	want(t, Do(t, h.Store, limiter.Charge, c), false, v1alpha1.MaxLimit-1)
	want(t, Do(t, h.Store, limiter.Charge, Check("k:", v1alpha1.MaxLimit)), false, v1alpha1.MaxLimit)
	want(t, Do(t, h.Store, limiter.Charge, Check("k:", v1alpha1.MaxLimit)), true, v1alpha1.MaxLimit)
}

func deletes(t *testing.T, h Harness) {
	for range 9 {
		Do(t, h.Store, limiter.Charge, Check("k:", 5))
	}
	h.Delete("k:")
	for i := range 7 {
		if denied := Do(t, h.Store, limiter.Charge, Check("k:", 5)).Denied; denied != (i >= 5) {
			t.Errorf("request %d after the deletion: denied %v", i+1, denied)
		}
	}
}

func batches(t *testing.T, h Harness) {
	var batch []*limiter.Op
	for i := range 30 {
		batch = append(batch, &limiter.Op{Checks: []limiter.Check{Check(fmt.Sprint("k", i%3, ":"), 4)}})
		batch = append(batch, &limiter.Op{Kind: limiter.Look, Checks: []limiter.Check{Check("other:", 1), Check("k0:", 100)}})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	h.Store.Do(ctx, batch)
	admitted := map[string]int{}
	for _, op := range batch {
		if op.Err != nil {
			t.Fatal(op.Err)
		}
		if op.Kind == limiter.Charge && !op.Denied {
			admitted[op.Checks[0].Key]++
		}
	}
	for key, n := range admitted {
		if n != 4 {
			t.Errorf("%s: %d admitted, want 4", key, n)
		}
	}
}

func concurrent(t *testing.T, h Harness) {
	var callers sync.WaitGroup
	var admitted atomic.Int64
	for range 16 {
		callers.Go(func() {
			for range 100 {
				op := &limiter.Op{Checks: []limiter.Check{Check("a:", 500), Check("b:", 2000)}}
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				h.Store.Do(ctx, []*limiter.Op{op})
				cancel()
				if op.Err != nil {
					t.Error(op.Err)
				} else if !op.Denied {
					admitted.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if n := admitted.Load(); n != 500 {
		t.Errorf("%d admitted, want 500", n)
	}
	want(t, Do(t, h.Store, limiter.Look, Check("a:", 500), Check("b:", 2000)), true, 500, 500)
}

func windowEnd(t *testing.T, h Harness) {
	c := Do(t, h.Store, limiter.Charge, Check("k:", 5)).Checks[0]
	if c.End%Window != 0 || c.Left <= 0 || c.Left > Window*int64(time.Second) {
		t.Errorf("end %d, left %v", c.End, time.Duration(c.Left))
	}
}

func records(t *testing.T, h Harness) {
	want(t, Do(t, h.Store, limiter.Charge, Check("a:", 3)), false, 1)
	want(t, Do(t, h.Store, limiter.Charge, Check("a:", 3)), false, 2)
	many := Check("a:", 3)
	many.Cost = 1_000_000
	want(t, Do(t, h.Store, limiter.Record, many), false, 2)
	want(t, Do(t, h.Store, limiter.Charge, Check("a:", 3)), false, 3)
	want(t, Do(t, h.Store, limiter.Charge, Check("a:", 3)), true, 3)
	want(t, Do(t, h.Store, limiter.Record, Check("absent:", 3)), false, 0)
	want(t, Do(t, h.Store, limiter.Charge, Check("absent:", 3)), false, 1)
}
