package redisstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// scripted is a server that answers each call as the test says.
type scripted struct {
	answer func(ctx context.Context, c *call)
	calls  int
}

func (scripted) group(ops []*limiter.Op) []*call { return newCall(ops).alone() }

func (s *scripted) execute(ctx context.Context, calls []*call) {
	for _, c := range calls {
		s.calls++
		s.answer(ctx, c)
	}
}

// allows answers that everything is within its limit, at a time of its own.
func allows(_ context.Context, c *call) {
	c.reply = []int64{time.Now().Unix(), 0, 0}
	for _, op := range c.ops {
		for range op.Checks {
			c.reply = append(c.reply, 1)
		}
	}
}

// hangs does not answer in time.
func hangs(ctx context.Context, c *call) {
	<-ctx.Done()
	c.err = ctx.Err()
}

// says answers with an error.
func says(text string) func(context.Context, *call) {
	return func(_ context.Context, c *call) { c.err = answerError(text) }
}

type answerError string

func (e answerError) Error() string { return string(e) }
func (answerError) RedisError()     {}

const testBudget = 50 * time.Millisecond

func (s *scripted) node() *node {
	start := time.Now()
	return newNode(s, func() time.Duration { return time.Since(start) }, testBudget, nobody{})
}

// decide makes one decision and returns its error.
func decide(n *node, budget time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	op := &limiter.Op{Checks: []limiter.Check{{Key: "k:", Limit: 5, Window: 60, Cost: 1}}}
	end, _ := ctx.Deadline()
	n.do(ctx, end, op)
	return op.Err
}

func TestServerThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: hangs}
		n := s.node()
		for range breakerRow {
			if err := decide(n, testBudget); !errors.Is(err, limiter.ErrTimeout) {
				t.Fatalf("error %v", err)
			}
		}
		began := time.Now()
		for range 1000 {
			if err := decide(n, testBudget); !errors.Is(err, limiter.ErrCircuitOpen) {
				t.Fatalf("error %v", err)
			}
		}
		if s.calls != breakerRow || time.Since(began) > 0 {
			t.Errorf("%d calls, and %v for what was not asked", s.calls, time.Since(began))
		}
		for range 10 {
			pass(breakerProbe)
			for range 100 {
				_ = decide(n, testBudget)
			}
		}
		if s.calls > breakerRow+10 {
			t.Errorf("%d calls in ten seconds, want one a second", s.calls-breakerRow)
		}
		s.answer = allows
		pass(2 * breakerProbe)
		for range 100 {
			if err := decide(n, testBudget); err != nil {
				t.Fatalf("after the server is back: %v", err)
			}
		}
	})
}

func TestCallersInAHurrySayNothingAboutTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: hangs}
		n := s.node()
		for range 100 {
			if err := decide(n, testBudget/5); !errors.Is(err, limiter.ErrTimeout) {
				t.Fatalf("error %v", err)
			}
		}
		if s.calls != 100 {
			t.Errorf("%d calls", s.calls)
		}
	})
}

func TestServerThatSaysNoIsNotLeftAlone(t *testing.T) {
	for text, want := range map[string]error{
		"OOM command not allowed when used memory > 'maxmemory'.": limiter.ErrOutOfMemory,
		"LOADING Redis is loading the dataset in memory":          limiter.ErrLoading,
		"NOPERM this user has no permissions":                     limiter.ErrDenied,
		"CLUSTERDOWN The cluster is down":                         limiter.ErrLoading,
		"BUSY Redis is busy running a script":                     limiter.ErrLoading,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{answer: says(text)}
			n := s.node()
			for range 50 {
				if err := decide(n, testBudget); !errors.Is(err, want) {
					t.Fatalf("%s: error %v, want %v", text, err, want)
				}
			}
			if s.calls != 50 {
				t.Errorf("%s: %d calls for 50 decisions", text, s.calls)
			}
		})
	}
}

func TestServerThatIsMovingIsAskedAgain(t *testing.T) {
	for text, want := range map[string]error{
		"READONLY You can't write against a read only replica.": limiter.ErrReadOnly,
		"MOVED 3999 127.0.0.1:6381":                             limiter.ErrLoading,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{}
			n := s.node()
			s.answer = allows
			_ = decide(n, testBudget) // learns the clock
			s.calls = 0
			s.answer = func(ctx context.Context, c *call) {
				if s.calls == 1 {
					says(text)(ctx, c)
					return
				}
				allows(ctx, c)
			}
			if err := decide(n, testBudget); err != nil || s.calls != 2 {
				t.Errorf("%s once: error %v after %d calls", text, err, s.calls)
			}
			s.calls, s.answer = 0, says(text)
			if err := decide(n, testBudget); !errors.Is(err, want) || s.calls != 1+maxMoving {
				t.Errorf("%s for ever: error %v after %d calls", text, err, s.calls)
			}
			s.calls = 0
			if err := decide(n, pause); !errors.Is(err, want) || s.calls != 1 {
				t.Errorf("%s without time for a pause: error %v after %d calls", text, err, s.calls)
			}
		})
	}
}

func TestStaleWindowsAreNamedAnewAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: func(_ context.Context, c *call) { c.reply = []int64{time.Now().Unix(), 0, 0, codeStale} }}
		if err := decide(s.node(), testBudget); !errors.Is(err, limiter.ErrStale) || s.calls != maxStale {
			t.Errorf("error %v after %d calls", err, s.calls)
		}
	})
}
