// Package memstore keeps counters in this process's memory, with the semantics
// of redisstore. It serves failureMode LocalFallback, and tests and benchmarks
// of what lies above a store.
//
// It is bounded: when it is full, the counter that was not used for longest is
// forgotten, and its caller begins anew. It never fails.
package memstore

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// DefaultSize is how many counters a store holds unless told otherwise.
const DefaultSize = 100_000

// Store keeps counters in memory.
type Store struct {
	now func() time.Time

	mu       sync.Mutex
	counters *simplelru.LRU[string, *counter]
}

// counter is the state of one window.
type counter struct {
	number, admitted, denied int64
}

// New returns a store of so many counters that takes the time from now. A size
// of 0 means DefaultSize.
func New(now func() time.Time, size int) *Store {
	if size <= 0 {
		size = DefaultSize
	}
	counters, _ := simplelru.NewLRU[string, *counter](size, nil) // fails for sizes below 1 only
	return &Store{now: now, counters: counters}
}

// Len is how many counters the store holds.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters.Len()
}

// Delete forgets a counter, as DEL does in Redis.
func (s *Store) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters.Remove(key)
}

// Do carries out a batch. It does not wait, so the context is not asked.
func (s *Store) Do(_ context.Context, batch []*limiter.Op) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range batch {
		op.Denied, op.Err = false, nil
		s.do(op, now)
	}
}

func (s *Store) do(op *limiter.Op, now time.Time) {
	for i := range op.Checks {
		check := &op.Checks[i]
		number := now.Unix() / check.Window
		check.End = (number + 1) * check.Window
		check.Left = (check.End-now.Unix())*int64(time.Second) - int64(now.Nanosecond())
		admitted := s.read(check.Key, number).admitted
		check.Admitted = admitted
		check.Over = admitted+cost(check) > check.Limit
		if op.Kind == limiter.Look {
			check.Over = admitted+max(cost(check), 1) > check.Limit
		}
		op.Denied = op.Denied || check.Over && !check.Shadow
	}
	switch op.Kind {
	case limiter.Charge:
		s.charge(op)
	case limiter.Refund:
		s.refund(op)
	case limiter.Debit:
		s.debit(op)
	case limiter.Record:
		op.Denied = false
		for i := range op.Checks {
			op.Checks[i].Over = false
		}
	}
}

func (s *Store) charge(op *limiter.Op) {
	for i := range op.Checks {
		check := &op.Checks[i]
		switch {
		case check.Over:
			c := s.write(check)
			c.denied = saturate(c.denied, cost(check))
		case !op.Denied:
			c := s.write(check)
			c.admitted += cost(check)
			check.Admitted = c.admitted
		}
	}
}

func (s *Store) refund(op *limiter.Op) {
	op.Denied = false
	for i := range op.Checks {
		check := &op.Checks[i]
		check.Over = false
		if back := min(cost(check), check.Admitted); back > 0 {
			c := s.write(check)
			c.admitted -= back
			check.Admitted = c.admitted
		}
	}
}

func (s *Store) debit(op *limiter.Op) {
	op.Denied = false
	for i := range op.Checks {
		check := &op.Checks[i]
		c := s.write(check)
		c.admitted = saturate(c.admitted, cost(check))
		check.Admitted = c.admitted
		check.Over = c.admitted > check.Limit
		op.Denied = op.Denied || check.Over && !check.Shadow
	}
}

// read is the state of a counter in a window; zero where there is none.
func (s *Store) read(key string, number int64) counter {
	if c, ok := s.counters.Get(key); ok && c.number == number {
		return *c
	}
	return counter{}
}

// write is the counter of a check, made new where it is of another window.
func (s *Store) write(check *limiter.Check) *counter {
	number := check.End/check.Window - 1
	c, ok := s.counters.Get(check.Key)
	if !ok {
		c = &counter{}
		s.counters.Add(check.Key, c)
	}
	if c.number != number {
		*c = counter{number: number}
	}
	return c
}

// cost is what a check charges: more than limit + 1 makes no difference.
func cost(c *limiter.Check) int64 { return int64(min(c.Cost, uint64(c.Limit)+1)) }

func saturate(a, b int64) int64 {
	if a > math.MaxInt64/2-b {
		return a
	}
	return a + b
}
