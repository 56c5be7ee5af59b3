package memstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		s := New(time.Now, 0)
		return storetest.Harness{Store: s, Delete: s.Delete}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	s := New(time.Now, 10)
	for i := range 1000 {
		storetest.Do(t, s, limiter.Charge, storetest.Check(fmt.Sprint(i), 1))
	}
	if s.Len() != 10 {
		t.Errorf("%d counters, want 10", s.Len())
	}
}

func TestWindowTurns(t *testing.T) {
	now := time.Unix(99, 999_999_999)
	s := New(func() time.Time { return now }, 0)
	check := limiter.Check{Key: "k", Limit: 1, Window: 10, Cost: 1}
	storetest.Do(t, s, limiter.Charge, check)
	if op := storetest.Do(t, s, limiter.Charge, check); !op.Denied || op.Checks[0].End != 100 || op.Checks[0].Left != 1 {
		t.Errorf("in the first window: %+v", op)
	}
	now = now.Add(1)
	if op := storetest.Do(t, s, limiter.Charge, check); op.Denied || op.Checks[0].End != 110 {
		t.Errorf("in the next window: %+v", op)
	}
}
