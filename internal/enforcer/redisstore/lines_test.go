package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// server stands for a node: it answers a call when told to.
type server struct {
	mu    sync.Mutex
	calls [][]*limiter.Op
	gate  chan struct{}
}

func newServer() *server { return &server{gate: make(chan struct{})} }

func (s *server) call(ctx context.Context, ops []*limiter.Op) {
	s.mu.Lock()
	s.calls = append(s.calls, append([]*limiter.Op(nil), ops...))
	s.mu.Unlock()
	select {
	case <-s.gate:
		for _, op := range ops {
			op.Checks[0].Admitted = 7
		}
	case <-ctx.Done():
		fail(ops, limiter.ErrTimeout)
	}
}

// sizes are how many operations each call had so far.
func (s *server) sizes() (sizes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ops := range s.calls {
		sizes = append(sizes, len(ops))
	}
	return sizes
}

// crowd are callers of one node.
type crowd struct {
	*lines
	sync.WaitGroup
	mu   sync.Mutex
	errs map[error]int
}

func newCrowd(s *server) *crowd { return &crowd{lines: newLines(s.call), errs: map[error]int{}} }

// come lets n callers with a budget decide one request each of a policy.
func (c *crowd) come(n int, budget time.Duration, policy string) {
	for range n {
		c.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), budget)
			defer cancel()
			end, _ := ctx.Deadline()
			op := &limiter.Op{Checks: []limiter.Check{{Key: "rl:{u}:" + policy + "/rule:60:", Limit: 1, Window: 60}}}
			c.do(ctx, end, op)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.errs[op.Err]++
		})
	}
	synctest.Wait()
}

func (c *crowd) want(t *testing.T, err error, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errs[err] != n {
		t.Errorf("%d operations ended with %v, want %d; all: %v", c.errs[err], err, n, c.errs)
	}
}

func wantSizes(t *testing.T, s *server, want ...int) {
	t.Helper()
	if got := s.sizes(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("calls of %v operations, want %v", got, want)
	}
}

func TestWhatWaitsGoesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newCrowd(s)
		c.come(1, time.Second, "shop/a")
		c.come(100, time.Second, "shop/a")
		wantSizes(t, s, 1)
		s.gate <- struct{}{}
		synctest.Wait()
		wantSizes(t, s, 1, 100)
		close(s.gate)
		c.Wait()
		c.want(t, nil, 101)
	})
}

func TestCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newCrowd(s)
		c.come(1, time.Second, "shop/a")
		c.come(300, time.Second, "shop/a")
		wantSizes(t, s, 1, 128, 128)
		close(s.gate)
		c.Wait()
		wantSizes(t, s, 1, 128, 128, 44)
		c.want(t, nil, 301)
	})
}

func TestSlowCallHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newCrowd(s)
		for i := range 2 * maxLines {
			c.come(1, time.Second, "shop/a")
			wantSizes(t, s, []int{1, 1, 1, 1}[:min(i+1, maxLines)]...)
			// The next one finds a call that is slow, until there are four.
			pass(slow + time.Millisecond)
			synctest.Wait()
		}
		close(s.gate)
		c.Wait()
		c.want(t, nil, 2*maxLines)
	})
}

func TestOperationThatWaitsBehindASlowCallOpensALineByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newCrowd(s)
		c.come(1, time.Second, "shop/a")
		c.come(1, time.Second, "shop/a")
		wantSizes(t, s, 1)
		pass(slow + sweepEvery)
		synctest.Wait()
		wantSizes(t, s, 1, 1)
		close(s.gate)
		c.Wait()
	})
}

func TestEachOperationEndsInItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newCrowd(s)
		began := time.Now()
		c.come(1, 100*time.Millisecond, "shop/a")
		c.come(50, 50*time.Millisecond, "shop/a")
		c.come(50, 200*time.Millisecond, "shop/a")
		pass(50*time.Millisecond + sweepEvery)
		synctest.Wait()
		c.want(t, limiter.ErrTimeout, 50)
		c.Wait()
		c.want(t, limiter.ErrTimeout, 101)
		if took := time.Since(began); took > 200*time.Millisecond+sweepEvery {
			t.Errorf("the last one took %v", took)
		}
	})
}

func TestAnswerThatComesTooLateIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		l := newLines(func(_ context.Context, ops []*limiter.Op) {
			<-answer // does not keep to its deadline
			for _, op := range ops {
				op.Denied, op.Checks[0].Admitted = true, 99
			}
		})
		end := time.Now().Add(time.Millisecond)
		op := &limiter.Op{Checks: []limiter.Check{{Key: "k:", Limit: 1, Window: 60}}}
		p := l.submit(end, op)
		p.await(op)
		if !errors.Is(op.Err, limiter.ErrTimeout) {
			t.Errorf("error %v", op.Err)
		}
		*op = limiter.Op{Checks: op.Checks}
		close(answer)
		synctest.Wait()
		if op.Denied || op.Checks[0].Admitted != 0 {
			t.Errorf("the caller's memory was written to: %+v", op)
		}
	})
}

func TestOnePolicyFillsHalfTheQueueAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := newCrowd(s)
		c.come(1, time.Hour, "shop/greedy")
		// Four lines of 128, and the queue.
		c.come(maxLines*maxChecks+maxQueue, time.Hour, "shop/greedy")
		waits := 1 + (maxLines-1)*maxChecks + maxQueue/2
		c.want(t, limiter.ErrOverloaded, 1+maxLines*maxChecks+maxQueue-waits)
		before := c.errs[limiter.ErrOverloaded]
		c.come(maxQueue/2, time.Hour, "shop/modest")
		c.want(t, limiter.ErrOverloaded, before)
		c.come(1, time.Hour, "shop/third")
		c.want(t, limiter.ErrOverloaded, before+1)
		close(s.gate)
		c.Wait()
	})
}

func TestPolicyOfAnOperation(t *testing.T) {
	for key, want := range map[string]string{
		"rl:{user_123}:shop/storefront/per-user:60:":  "shop/storefront",
		"rl:{shop/storefront}:shop/storefront/all:1:": "shop/storefront",
		"k:": "",
		"":   "",
	} {
		if got := policyOf(&limiter.Op{Checks: []limiter.Check{{Key: key}}}); got != want {
			t.Errorf("%q is of %q, want %q", key, got, want)
		}
	}
}

// pass lets time go by in a synctest bubble, where nobody waits for it.
func pass(d time.Duration) { <-time.After(d) }
