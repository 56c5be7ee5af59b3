package denials

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

const (
	// DefaultSize is how many counters a Store knows of unless told otherwise.
	DefaultSize = 1 << 16
	// reportEvery is how often attempts are reported at most.
	reportEvery = time.Second
	// gather is how long the first attempts after a quiet time wait for others.
	gather = 50 * time.Millisecond
	// portion is how many counters go into one report at most.
	portion = 128
	// trust is how long what is known is used without asking again: until the
	// next report, and what that may be late.
	trust = reportEvery + gather
)

// Options are a Store's bounds.
type Options struct {
	// Size is how many counters are known of at most. Defaults to DefaultSize.
	Size int
	// Budget is how long a report may take. Defaults to a second.
	Budget time.Duration
}

// Store is a limiter.Store that answers known denials, and asks another for all
// else.
type Store struct {
	store  limiter.Store
	table  *table
	budget time.Duration

	mu       sync.Mutex
	timer    *time.Timer
	due      bool // a report is to come
	closed   bool
	reported time.Time // when the last report began
	under    sync.WaitGroup
}

var (
	_ limiter.Store    = (*Store)(nil)
	_ limiter.Recaller = (*Store)(nil)
)

// New returns a store in front of another. Close it before that.
func New(store limiter.Store, opts Options) *Store {
	if opts.Size <= 0 {
		opts.Size = DefaultSize
	}
	if opts.Budget <= 0 {
		opts.Budget = time.Second
	}
	s := &Store{store: store, table: newTable(opts.Size), budget: opts.Budget}
	s.timer = time.AfterFunc(time.Hour, s.report)
	s.timer.Stop()
	return s
}

// Do implements limiter.Store.
func (s *Store) Do(ctx context.Context, batch []*limiter.Op) {
	if len(batch) == 1 {
		s.one(ctx, batch)
		return
	}
	rest := make([]*limiter.Op, 0, len(batch))
	for _, op := range batch {
		if !s.known(op) {
			rest = append(rest, op)
		}
	}
	s.ask(ctx, rest)
}

func (s *Store) one(ctx context.Context, batch []*limiter.Op) {
	if !s.known(batch[0]) {
		s.ask(ctx, batch)
	}
}

// ask asks the store, and remembers what is over.
func (s *Store) ask(ctx context.Context, batch []*limiter.Op) {
	if len(batch) == 0 {
		return
	}
	// How long a window lasts still was so at some time after this one. An answer
	// that comes late must not make it last longer.
	asked := time.Now()
	s.store.Do(ctx, batch)
	for _, op := range batch {
		if op.Err == nil {
			s.table.learn(asked, op)
		}
	}
}

// known decides an operation from memory, if that is possible.
func (s *Store) known(op *limiter.Op) bool {
	if op.Kind != limiter.Charge || !s.table.recall(op) {
		return false
	}
	s.table.count(op)
	s.schedule()
	return true
}

// Recall implements limiter.Recaller.
func (s *Store) Recall(op *limiter.Op) bool { return s.table.recall(op) && op.Denied }

// schedule sees to it that there will be a report.
func (s *Store) schedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due || s.closed {
		return
	}
	s.due = true
	s.timer.Reset(max(gather, time.Until(s.reported.Add(reportEvery))))
}

// report sends the attempts that were denied from memory.
func (s *Store) report() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.due, s.reported = false, time.Now()
	s.under.Add(1)
	s.mu.Unlock()
	defer s.under.Done()
	s.send()
}

// send reports in portions, so that decisions wait for one of them at most.
func (s *Store) send() {
	for some := range slices.Chunk(s.table.take(), portion) {
		ctx, cancel := context.WithTimeout(context.Background(), s.budget)
		ops := make([]*limiter.Op, len(some))
		for i := range some {
			ops[i] = &some[i].op
		}
		s.store.Do(ctx, ops)
		cancel()
		for i := range some {
			if s.table.settle(&some[i]) {
				s.schedule()
			}
		}
	}
}

// Close reports what is left. Call it when no Do is running or to come.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.timer.Stop()
	s.mu.Unlock()
	s.under.Wait()
	s.send()
}
