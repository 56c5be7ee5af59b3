package denials

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

const (
	// shards keep callers on different processors apart.
	shards = 16
	// minLost is how many reports a shard keeps at least for entries that had to
	// make room within one second.
	minLost = 1024
)

// table is what is known of counters that are over, and of those beside them.
type table struct {
	seed maphash.Seed
	// entries lets a table without any cost nothing.
	entries atomic.Int64
	shards  [shards]shard
}

type shard struct {
	mu      sync.Mutex
	entries *simplelru.LRU[string, *entry]
	// lost are reports for entries that had to make room.
	lost []report
	size int
}

// entry is one counter in one window, as the store last told of it.
type entry struct {
	limit, window int64
	admitted      int64
	ends          int64     // the window's end by the store's clock, in Unix seconds
	over          time.Time // the same, by this process's
	asked         time.Time // when the store told of it
	reporting     bool      // and is being asked again
	attempts      uint64    // denied from memory since then
	shown         bool      // in a denial since then
}

// report is the attempts on one counter, as an operation.
type report struct {
	op  limiter.Op
	end int64
}

func newTable(size int) *table {
	t := &table{seed: maphash.MakeSeed()}
	for i := range t.shards {
		s := &t.shards[i]
		s.size = max(1, size/shards)
		s.entries, _ = simplelru.NewLRU(s.size, s.dropped) // fails for sizes below 1 only
	}
	return t
}

// dropped keeps the attempts of an entry that is gone from being lost.
func (s *shard) dropped(key string, e *entry) {
	if e.attempts > 0 && time.Now().Before(e.over) && len(s.lost) < max(s.size, minLost) {
		s.lost = append(s.lost, e.report(key))
	}
}

func (t *table) shardOf(key string) *shard { return &t.shards[maphash.String(t.seed, key)%shards] }

// recall fills in a Charge or a Look if what is known decides it: a counter that
// enforces denies, or all are Shadow counters that are over. Counters that nothing
// is known of are Unknown then; what others show is a second old at most.
func (t *table) recall(op *limiter.Op) bool {
	for i := range op.Checks {
		op.Checks[i].Unknown = false
	}
	if t.entries.Load() == 0 {
		return false
	}
	denied, over, now := false, 0, time.Now()
	for i := range op.Checks {
		check := &op.Checks[i]
		if t.read(now, check); check.Over {
			over++
			denied = denied || !check.Shadow
		}
	}
	if denied || over > 0 && over == len(op.Checks) {
		op.Denied, op.Err = denied, nil
		return true
	}
	for i := range op.Checks {
		op.Checks[i].Unknown = false
	}
	return false
}

// read fills in a check with what is known of its counter.
func (t *table) read(now time.Time, check *limiter.Check) {
	s := t.shardOf(check.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(check.Key)
	ok = ok && e.isFor(now, check)
	check.Unknown, check.Over = !ok, ok && e.denies(now, check)
	if ok {
		e.shown = true
		check.Admitted, check.End, check.Left = e.admitted, e.ends, int64(e.over.Sub(now))
	}
}

// isFor tells that an entry is about a check's limit and about the window that it is
// now.
func (e *entry) isFor(now time.Time, check *limiter.Check) bool {
	return e.limit == check.Limit && e.window == check.Window && now.Before(e.over)
}

// denies tells that a check is over by what is known, and that this is recent.
func (e *entry) denies(now time.Time, check *limiter.Check) bool {
	if now.Sub(e.asked) > trust && !e.reporting {
		return false
	}
	return costOf(check) > uint64(max(0, check.Limit-e.admitted))
}

// costOf is what a check charges: more than limit + 1 makes no difference.
func costOf(check *limiter.Check) uint64 { return min(max(check.Cost, 1), uint64(check.Limit)+1) }

// count adds the attempt of an operation that was denied from memory.
func (t *table) count(op *limiter.Op) {
	for i := range op.Checks {
		check := &op.Checks[i]
		if check.Unknown || !check.Over {
			continue
		}
		s := t.shardOf(check.Key)
		s.mu.Lock()
		if e, ok := s.entries.Peek(check.Key); ok {
			e.attempts += costOf(check)
		}
		s.mu.Unlock()
	}
}

// learn takes over what the store said of a request that is over somewhere: also of
// its other counters, so that a denial from memory can show them. It was asked not
// before then.
func (t *table) learn(asked time.Time, op *limiter.Op) {
	over := func(c limiter.Check) bool { return c.Over }
	switch {
	case op.Kind == limiter.Refund:
		for i := range op.Checks {
			t.forget(op.Checks[i].Key)
		}
	case op.Kind == limiter.Charge && slices.ContainsFunc(op.Checks, over):
		for i := range op.Checks {
			t.put(asked, &op.Checks[i])
		}
	}
}

func (t *table) put(asked time.Time, check *limiter.Check) {
	s := t.shardOf(check.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{
		limit: check.Limit, window: check.Window, admitted: check.Admitted,
		ends: check.End, over: asked.Add(time.Duration(check.Left)), asked: asked,
	}
	if before, ok := s.entries.Peek(check.Key); ok {
		if before.ends == e.ends {
			e.attempts, e.reporting = before.attempts, before.reporting
		}
		before.attempts = 0
	} else {
		t.entries.Add(1)
	}
	if s.entries.Add(check.Key, e) {
		t.entries.Add(-1)
	}
}

// forget drops what is known of a counter, but not the attempts on it.
func (t *table) forget(key string) {
	s := t.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries.Remove(key) {
		t.entries.Add(-1)
	}
}

// take returns the attempts since the last report, and drops what no longer holds.
func (t *table) take() (reports []report) {
	now := time.Now()
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, key := range s.entries.Keys() {
			e, _ := s.entries.Peek(key)
			switch {
			case !now.Before(e.over), e.attempts == 0 && !e.shown && now.Sub(e.asked) > trust:
				e.attempts = 0
				s.entries.Remove(key)
				t.entries.Add(-1)
			case e.attempts > 0:
				reports = append(reports, e.report(key))
				e.attempts, e.reporting, e.shown = 0, true, false
			case e.shown:
				reports = append(reports, e.question(key))
				e.shown = false
			}
		}
		reports = append(reports, s.lost...)
		s.lost = nil
		s.mu.Unlock()
	}
	return reports
}

func (e *entry) report(key string) report {
	return report{end: e.ends, op: limiter.Op{Kind: limiter.Record, Checks: []limiter.Check{
		{Key: key, Limit: e.limit, Window: e.window, Cost: e.attempts},
	}}}
}

// question asks what has become of a counter that was shown.
func (e *entry) question(key string) report {
	return report{end: e.ends, op: limiter.Op{Kind: limiter.Look, Checks: []limiter.Check{
		{Key: key, Limit: e.limit, Window: e.window, Cost: 1},
	}}}
}

// settle takes over the answer to a report. It tells whether the report must go
// again.
func (t *table) settle(r *report) (again bool) {
	check := &r.op.Checks[0]
	s := t.shardOf(check.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Peek(check.Key)
	if !ok || e.ends != r.end {
		return false
	}
	e.reporting = false
	switch {
	case r.op.Err == nil:
		e.admitted, e.asked = check.Admitted, time.Now()
	case r.op.Kind == limiter.Record && !limiter.MayHaveHappened(r.op.Err):
		e.attempts += check.Cost
		return true
	}
	return false
}
