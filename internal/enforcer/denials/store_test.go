package denials_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/denials"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	redistest "github.com/weir-dev/weir/test/redis"
)

// spy counts what reaches a store, and fails on demand.
type spy struct {
	limiter.Store
	mu       sync.Mutex
	trips    int
	recorded uint64
	fail     error
}

func (s *spy) Do(ctx context.Context, batch []*limiter.Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trips++
	if s.fail != nil {
		for _, op := range batch {
			op.Err = s.fail
		}
		return
	}
	s.Store.Do(ctx, batch)
	for _, op := range batch {
		if op.Kind == limiter.Record {
			s.recorded += op.Checks[0].Cost
		}
	}
}

func (s *spy) seen() (trips int, recorded uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trips, s.recorded
}

func newSpy() *spy { return &spy{Store: memstore.New(time.Now, 0)} }

func charge(t *testing.T, s limiter.Store, checks ...limiter.Check) *limiter.Op {
	t.Helper()
	return storetest.Do(t, s, limiter.Charge, checks...)
}

func shadowed(c limiter.Check) limiter.Check {
	c.Shadow = true
	return c
}

func TestStoreBehavesLikeTheOneBehindIt(t *testing.T) {
	server := redistest.Start(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server.Client().FlushAll(t.Context())
		redis, err := redisstore.New(redisstore.Config{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		s := denials.New(redis, denials.Options{})
		t.Cleanup(func() {
			s.Close()
			_ = redis.Close()
		})
		return storetest.Harness{Store: s, Delete: func(key string) {
			server.Client().Del(t.Context(), fmt.Sprint(key, time.Now().Unix()/storetest.Window))
			// What is known stays so for a second at most.
			end := server.Client().Time(t.Context()).Val().Add(1100 * time.Millisecond)
			for server.Client().Time(t.Context()).Val().Before(end) {
			}
		}}
	})
}

func TestCounterThatIsOverCostsOneTripASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newSpy()
		s := denials.New(behind, denials.Options{})
		denied := 0
		const seconds, rate = 20, 1000
		for range seconds * rate {
			if charge(t, s, storetest.Check("hot:", 5)).Denied {
				denied++
			}
			pass(time.Second / rate)
		}
		s.Close()
		trips, recorded := behind.seen()
		if denied != seconds*rate-5 || trips > 6+seconds+1 {
			t.Errorf("%d of %d denied with %d trips", denied, seconds*rate, trips)
		}
		if want := uint64(seconds*rate - 6); recorded != want {
			t.Errorf("%d attempts reported, want %d", recorded, want)
		}
	})
}

func TestDeletedCounterAdmitsWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newSpy()
		s := denials.New(behind, denials.Options{})
		defer s.Close()
		for range 3 {
			charge(t, s, storetest.Check("k:", 2))
		}
		behind.mu.Lock()
		behind.Store = memstore.New(time.Now, 0)
		behind.mu.Unlock()
		for began := time.Now(); charge(t, s, storetest.Check("k:", 2)).Denied; {
			if time.Since(began) > 1100*time.Millisecond {
				t.Fatal("still denied")
			}
			pass(time.Millisecond)
		}
	})
}

func TestChangedLimitCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials.New(newSpy(), denials.Options{})
		defer s.Close()
		for range 5 {
			charge(t, s, storetest.Check("k:", 2))
		}
		if charge(t, s, storetest.Check("k:", 3)).Denied {
			t.Error("denied by the limit that was raised")
		}
		if !charge(t, s, storetest.Check("k:", 3)).Denied || !charge(t, s, storetest.Check("k:", 1)).Denied {
			t.Error("not denied by the limit in force")
		}
		if charge(t, s, storetest.Check("k:", 4)).Denied {
			t.Error("denied by a limit that was lowered and raised again")
		}
	})
}

func TestSmallerCostMayStillFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials.New(newSpy(), denials.Options{})
		defer s.Close()
		large := storetest.Check("k:", 5)
		large.Cost = 6
		for range 2 {
			if !charge(t, s, large).Denied {
				t.Error("more than the limit at once is not denied")
			}
		}
		if charge(t, s, storetest.Check("k:", 5)).Denied {
			t.Error("the small one is denied")
		}
	})
}

func TestNextWindowIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials.New(newSpy(), denials.Options{})
		defer s.Close()
		check := limiter.Check{Key: "k:", Limit: 1, Window: 1, Cost: 1}
		for range 20 {
			first, second := charge(t, s, check), charge(t, s, check)
			if first.Denied || !second.Denied || second.Checks[0].Left <= 0 {
				t.Fatalf("%+v, then %+v", first, second)
			}
			pass(time.Duration(second.Checks[0].Left))
		}
	})
}

// late is a store whose answers take a while to come back.
type late struct {
	limiter.Store
	by time.Duration
}

func (l late) Do(ctx context.Context, batch []*limiter.Op) {
	l.Store.Do(ctx, batch)
	pass(l.by)
}

func TestLateAnswerDoesNotMakeItsWindowLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials.New(late{newSpy(), 300 * time.Millisecond}, denials.Options{})
		defer s.Close()
		check := limiter.Check{Key: "k:", Limit: 1, Window: 1, Cost: 1}
		charge(t, s, check) // the bubble's time begins with a window
		if second := charge(t, s, check); !second.Denied {
			t.Fatalf("%+v", second)
		}
		pass(400 * time.Millisecond)
		if third := charge(t, s, check); third.Denied {
			t.Errorf("denied in the next window: %+v", third)
		}
	})
}

func TestOtherCountersOfAKnownDenialAreUnknownAndUncharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newSpy()
		s := denials.New(behind, denials.Options{})
		defer s.Close()
		charge(t, s, storetest.Check("full:", 0))
		before, _ := behind.seen()
		op := charge(t, s, storetest.Check("fresh:", 5), storetest.Check("full:", 0))
		if !op.Denied || !op.Checks[0].Unknown || op.Checks[1].Unknown || !op.Checks[1].Over {
			t.Errorf("%+v", op)
		}
		if trips, _ := behind.seen(); trips != before {
			t.Errorf("%d trips for a known denial", trips-before)
		}
		if op := charge(t, s, storetest.Check("fresh:", 5)); op.Checks[0].Admitted != 1 || op.Checks[0].Unknown {
			t.Errorf("%+v", op)
		}
	})
}

func TestDenialsFromMemoryShowWhatIsKnownOfOtherCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newSpy()
		s, other := denials.New(behind, denials.Options{}), behind
		defer s.Close()
		both := func() *limiter.Op { return charge(t, s, storetest.Check("second:", 2), storetest.Check("day:", 5)) }
		both()
		both()
		before, _ := behind.seen()
		both()
		if op := both(); !op.Denied || op.Checks[1].Unknown || op.Checks[1].Over || op.Checks[1].Admitted != 2 {
			t.Errorf("%+v", op)
		}
		if trips, _ := behind.seen(); trips != before+1 {
			t.Errorf("%d trips for two denials", trips-before)
		}
		// What others use up meanwhile shows within a second, and counts as a denial.
		for range 3 {
			charge(t, other, storetest.Check("day:", 5))
		}
		for began := time.Now(); !both().Checks[1].Over; {
			if time.Since(began) > 1100*time.Millisecond {
				t.Fatal("the other counter is not asked about")
			}
			pass(time.Millisecond)
		}
	})
}

func TestShadowCountersThatAreOverDoNotDeny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newSpy()
		s := denials.New(behind, denials.Options{})
		charge(t, s, shadowed(storetest.Check("full:", 0)))
		before, _ := behind.seen()
		for range 100 {
			if op := charge(t, s, shadowed(storetest.Check("full:", 0))); op.Denied || !op.Checks[0].Over {
				t.Fatalf("%+v", op)
			}
		}
		if trips, _ := behind.seen(); trips != before {
			t.Errorf("%d trips for what is known", trips-before)
		}
		// With a counter that may still admit, the store is asked.
		if op := charge(t, s, storetest.Check("fresh:", 5), shadowed(storetest.Check("full:", 0))); op.Denied || op.Checks[0].Admitted != 1 {
			t.Errorf("%+v", op)
		}
		s.Close()
		if _, recorded := behind.seen(); recorded != 100 {
			t.Errorf("%d attempts reported", recorded)
		}
	})
}

func TestReportThatWasNotCarriedOutGoesAgain(t *testing.T) {
	for err, want := range map[error]uint64{limiter.ErrCircuitOpen: 10, limiter.ErrTimeout: 0} {
		synctest.Test(t, func(t *testing.T) {
			behind := newSpy()
			s := denials.New(behind, denials.Options{})
			for range 11 {
				charge(t, s, storetest.Check("full:", 0))
			}
			behind.mu.Lock()
			behind.fail = err
			behind.mu.Unlock()
			pass(100 * time.Millisecond)
			behind.mu.Lock()
			behind.fail = nil
			behind.mu.Unlock()
			pass(2 * time.Second)
			if _, recorded := behind.seen(); recorded != want {
				t.Errorf("after %v %d attempts were reported, want %d", err, recorded, want)
			}
			s.Close()
		})
	}
}

func TestAGivenBackCounterIsAskedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := denials.New(newSpy(), denials.Options{})
		defer s.Close()
		for range 4 {
			charge(t, s, storetest.Check("k:", 2))
		}
		storetest.Do(t, s, limiter.Refund, storetest.Check("k:", 2))
		if charge(t, s, storetest.Check("k:", 2)).Denied {
			t.Error("denied although one was given back")
		}
	})
}

func TestTableIsBoundedAndLosesNoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := newSpy()
		s := denials.New(behind, denials.Options{Size: 64})
		attempts, trips := 0, 0
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			before, _ := behind.seen()
			charge(t, s, storetest.Check(fmt.Sprint(random.IntN(100), ":"), 0))
			attempts++
			if after, _ := behind.seen(); after > before {
				trips++
			}
		}
		s.Close()
		if _, recorded := behind.seen(); recorded != uint64(attempts-trips) {
			t.Errorf("%d attempts, %d trips, %d reported", attempts, trips, recorded)
		}
	})
}

// TestManyCallersAreCountedOnce uses a real server: what was admitted is exact,
// and the counter shows every attempt.
func TestManyCallersAreCountedOnce(t *testing.T) {
	server := redistest.Start(t)
	redis, err := redisstore.New(redisstore.Config{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = redis.Close() }()
	var stores [3]*denials.Store
	for i := range stores {
		stores[i] = denials.New(redis, denials.Options{Budget: 20 * time.Second})
	}
	const callers, each, limit = 30, 200, 500
	var admitted [callers]int
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range each {
				if !charge(t, stores[i%len(stores)], storetest.Check("k:", limit)).Denied {
					admitted[i]++
				}
			}
		})
	}
	all.Wait()
	for _, s := range stores {
		s.Close()
	}
	sum := 0
	for _, n := range admitted {
		sum += n
	}
	key := fmt.Sprint("k:", time.Now().Unix()/storetest.Window)
	attempts, denied := server.Client().Get(t.Context(), key).Val(), server.Client().Get(t.Context(), key+":denied").Val()
	if sum != limit || attempts != fmt.Sprint(callers*each) || denied != fmt.Sprint(callers*each-limit) {
		t.Errorf("%d admitted, %s attempts, %s denied", sum, attempts, denied)
	}
}

// pass lets time go by in a synctest bubble, where nobody waits for it.
func pass(d time.Duration) { <-time.After(d) }
