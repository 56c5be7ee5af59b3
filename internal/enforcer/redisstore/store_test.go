package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	redistest "github.com/weir-dev/weir/test/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore(t testing.TB, address string) *Store {
	t.Helper()
	s, err := New(Config{Addresses: []string{address}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// windowKey is the whole key of a counter whose window does not turn.
func windowKey(key string) string {
	return fmt.Sprint(key, time.Now().Unix()/storetest.Window)
}

func TestStoreOnRedis(t *testing.T) {
	server := redistest.Start(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server.Client().FlushAll(t.Context())
		return storetest.Harness{Store: newStore(t, server.Addr()), Delete: func(key string) {
			server.Client().Del(t.Context(), windowKey(key))
		}}
	})
}

func TestStoreOnMiniredis(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		server := miniredis.RunT(t)
		return storetest.Harness{Store: newStore(t, server.Addr()), Delete: func(key string) { server.Del(windowKey(key)) }}
	})
}

// model is what the script should do, in plain words.
type model struct{ attempts, denied int64 }

// add counts n attempts. Where numbers would no longer be exact, attempts that go
// over a limit are not counted, and the denied ones before are forgotten.
func (m *model) add(n int64, deny, over bool) {
	switch {
	case m.attempts+n < maxNumber:
		m.attempts += n
		if deny {
			m.denied += n
		}
	case !over:
		m.attempts, m.denied = m.admitted()+n, 0
	}
}

func (m *model) admitted() int64 { return m.attempts - m.denied }

const modelDecisions = 20_000

// TestScriptAgreesWithModel drives script and model with the same operations.
func TestScriptAgreesWithModel(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Addr())
	decisions := 0
	for decisions < modelDecisions {
		rapid.Check(t, func(rt *rapid.T) {
			server.Client().FlushAll(context.Background())
			counters := map[string]*model{"a": {}, "b": {}, "c": {}}
			for range rapid.IntRange(20, 120).Draw(rt, "steps") {
				decisions++
				step(rt, server, store, counters)
			}
		})
	}
	t.Logf("%d decisions", decisions)
}

func step(t *rapid.T, server *redistest.Server, store *Store, counters map[string]*model) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, "counters")
	switch rapid.IntRange(0, 19).Draw(t, "event") {
	case 0:
		server.Client().Del(context.Background(), windowKey(names[0]))
		*counters[names[0]] = model{}
		return
	case 1:
		server.Client().Del(context.Background(), windowKey(names[0])+":denied")
		counters[names[0]].denied = 0
		return
	}
	op := &limiter.Op{Kind: rapid.SampledFrom([]limiter.Kind{limiter.Charge, limiter.Charge, limiter.Charge, limiter.Look, limiter.Refund, limiter.Debit, limiter.Record}).Draw(t, "kind")}
	for _, name := range names {
		op.Checks = append(op.Checks, limiter.Check{
			Key: name, Window: storetest.Window,
			Limit:  rapid.SampledFrom([]int64{0, 1, 5, 10, 20, 1 << 40, 1<<53 - 1}).Draw(t, "limit"),
			Cost:   rapid.SampledFrom([]uint64{1, 1, 1, 2, 7, math.MaxUint64}).Draw(t, "cost"),
			Shadow: rapid.IntRange(0, 4).Draw(t, "shadow") == 0,
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	store.Do(ctx, []*limiter.Op{op})
	if op.Err != nil {
		t.Fatalf("%v", op.Err)
	}
	over, denied := apply(op, counters)
	if op.Kind != limiter.Refund && op.Kind != limiter.Debit && op.Kind != limiter.Record && op.Denied != denied {
		t.Fatalf("%+v: denied %v, the model says %v", op.Checks, op.Denied, denied)
	}
	for i := range op.Checks {
		c := &op.Checks[i]
		if op.Kind == limiter.Charge && c.Over != over[i] {
			t.Fatalf("%s: over %v, the model says %v", c.Key, c.Over, over[i])
		}
		m := counters[c.Key]
		if c.Admitted < m.admitted() || c.Admitted > m.attempts {
			t.Fatalf("%s: admitted %d, the model says %+v", c.Key, c.Admitted, *m)
		}
		stored, _ := server.Client().Get(context.Background(), windowKey(c.Key)).Int64()
		if stored != m.attempts {
			t.Fatalf("%s: attempts %d, the model says %+v", c.Key, stored, *m)
		}
	}
}

// apply is the model's own decision.
func apply(op *limiter.Op, counters map[string]*model) (over []bool, denied bool) {
	for i := range op.Checks {
		c, m := &op.Checks[i], counters[op.Checks[i].Key]
		over = append(over, m.admitted()+int64(cost(op.Kind, c)) > c.Limit)
		denied = denied || over[i] && !c.Shadow
	}
	for i := range op.Checks {
		c, m := &op.Checks[i], counters[op.Checks[i].Key]
		n := int64(cost(op.Kind, c))
		switch op.Kind {
		case limiter.Charge:
			if over[i] || !denied {
				m.add(n, over[i], over[i])
			}
		case limiter.Refund:
			m.attempts -= min(n, m.admitted())
		case limiter.Debit:
			m.add(n, false, over[i])
		case limiter.Record:
			if m.attempts > 0 {
				m.add(n, true, true)
			}
		}
	}
	return over, denied
}

func TestDeniedRequestsMakeNoKeysForOtherRules(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Addr())
	for i := range 5000 {
		storetest.Do(t, store, limiter.Charge, storetest.Check("blocked:", 0), storetest.Check(fmt.Sprint("fresh", i, ":"), 10))
	}
	keys, err := server.Client().Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v; want the blocked counter and its mark", len(keys), err)
	}
}

func TestPoisonedKeyFailsItsOwnRequestOnly(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Addr())
	server.Client().LPush(t.Context(), windowKey("list:"), "x")
	server.Client().Set(t.Context(), windowKey("text:"), "abc", time.Hour)
	batch := []*limiter.Op{
		{Checks: []limiter.Check{storetest.Check("good:", 5), storetest.Check("list:", 5)}},
		{Checks: []limiter.Check{storetest.Check("text:", 5)}},
		{Checks: []limiter.Check{storetest.Check("good:", 5)}},
	}
	store.Do(t.Context(), batch)
	if !errors.Is(batch[0].Err, limiter.ErrPoisoned) || !errors.Is(batch[1].Err, limiter.ErrPoisoned) {
		t.Errorf("errors %v and %v", batch[0].Err, batch[1].Err)
	}
	if batch[2].Err != nil || batch[2].Checks[0].Admitted != 1 {
		t.Errorf("the neighbour: %+v", batch[2])
	}
}

func TestCounterWithoutExpiryIsRepaired(t *testing.T) {
	server := redistest.Start(t)
	var repaired atomic.Int64
	store, err := New(Config{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second, Observer: repairs{&repaired}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	server.Client().Set(t.Context(), windowKey("k:"), 999, 0)
	storetest.Do(t, store, limiter.Charge, storetest.Check("k:", 5))
	ttl := server.Client().TTL(t.Context(), windowKey("k:")).Val()
	if repaired.Load() != 1 || ttl <= 0 || ttl > storetest.Window*time.Second {
		t.Errorf("%d repaired, time to live %v", repaired.Load(), ttl)
	}
}

type repairs struct{ n *atomic.Int64 }

func (repairs) Called(time.Duration, error) {}
func (r repairs) Repaired(n int64)          { r.n.Add(n) }

func TestEveryKeyExpiresWithItsWindow(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Addr())
	for i := range 50 {
		storetest.Do(t, store, limiter.Charge, storetest.Check(fmt.Sprint(i%10, ":"), 2), storetest.Check("all:", 30))
	}
	keys := server.Client().Keys(t.Context(), "*").Val()
	if len(keys) == 0 {
		t.Fatal("no keys")
	}
	for _, key := range keys {
		if ttl := server.Client().TTL(t.Context(), key).Val(); ttl <= 0 || ttl > storetest.Window*time.Second {
			t.Errorf("%s lives %v", key, ttl)
		}
	}
}

// TestClockDoesNotMatter gives a store a clock that is wrong and steps.
func TestClockDoesNotMatter(t *testing.T) {
	server := redistest.Start(t)
	var skew atomic.Int64
	start := time.Now()
	store, err := New(Config{Addresses: []string{server.Addr()}, Timeout: 20 * time.Second,
		Now: func() time.Duration { return time.Since(start) + time.Duration(skew.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	right := newStore(t, server.Addr())
	check := limiter.Check{Key: "k:", Limit: 1000, Window: 3600, Cost: 1}
	for i, offset := range []time.Duration{0, 30 * time.Second, -30 * time.Second, 5 * time.Hour, -5 * time.Hour} {
		skew.Store(int64(offset))
		storetest.Do(t, store, limiter.Charge, check)
		op := storetest.Do(t, right, limiter.Charge, check)
		if got := op.Checks[0].Admitted; got != int64(2*(i+1)) && got > 2 {
			t.Errorf("offset %v: %d admitted", offset, got)
		}
	}
}

func TestFlushedScriptCountsOnce(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Addr())
	for i := range 5 {
		server.Client().ScriptFlush(t.Context())
		if op := storetest.Do(t, store, limiter.Charge, storetest.Check("k:", 10)); op.Checks[0].Admitted != int64(i+1) {
			t.Errorf("request %d: admitted %d", i+1, op.Checks[0].Admitted)
		}
	}
}

func TestFailuresHaveAKindAndPass(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Addr())
	attempt := func() error {
		op := &limiter.Op{Checks: []limiter.Check{storetest.Check("k:", 1000)}}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		store.Do(ctx, []*limiter.Op{op})
		return op.Err
	}
	server.Pause()
	if err := attempt(); !errors.Is(err, limiter.ErrTimeout) {
		t.Errorf("paused: %v", err)
	}
	server.Resume()
	storetest.Do(t, store, limiter.Charge, storetest.Check("k:", 1000))
	server.Stop()
	if err := attempt(); !errors.Is(err, limiter.ErrUnreachable) && !errors.Is(err, limiter.ErrTimeout) {
		t.Errorf("stopped: %v", err)
	}
	server.Run()
	for attempt() != nil {
		if t.Context().Err() != nil {
			t.Fatal("it does not come back")
		}
	}
}

func TestWrongPasswordIsDeniedAndNotTold(t *testing.T) {
	server := redistest.Start(t)
	server.Client().ConfigSet(t.Context(), "requirepass", "right")
	store, err := New(Config{Addresses: []string{server.Addr()}, Password: "canary-wrong", Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	op := &limiter.Op{Checks: []limiter.Check{storetest.Check("k:", 1)}}
	store.Do(t.Context(), []*limiter.Op{op})
	if !errors.Is(op.Err, limiter.ErrDenied) || strings.Contains(op.Err.Error(), "canary") {
		t.Errorf("error %v", op.Err)
	}
}

func FuzzReply(f *testing.F) {
	f.Add(int64(1), int64(0), int64(5), int64(-3), 2)
	f.Add(int64(1796076018), int64(999999), int64(codeStale), int64(codeStale-8), 2)
	f.Fuzz(func(t *testing.T, seconds, micros, first, second int64, n int) {
		op := &limiter.Op{Checks: []limiter.Check{storetest.Check("a:", 5), storetest.Check("b:", 7)}}
		c := newCall([]*limiter.Op{op})
		c.encode(1796076018)
		reply := []int64{seconds, micros, 0, first, second, first, second}
		reply = reply[:max(0, min(n+3, len(reply)))]
		c.reply = reply
		stale, err := c.decode(nil)
		if err != nil {
			if !errors.Is(err, limiter.ErrProtocol) {
				t.Error(err)
			}
			return
		}
		if len(reply) != 5 || len(stale) > 1 {
			t.Errorf("%d numbers were accepted", len(reply))
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	store := newStore(b, redistest.Start(b).Addr())
	op := &limiter.Op{Checks: []limiter.Check{storetest.Check("k:", 1<<40)}}
	batch := []*limiter.Op{op}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		store.Do(ctx, batch)
	}
	if op.Err != nil {
		b.Fatal(op.Err)
	}
}

func BenchmarkConcurrentCharge(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			store := newStore(b, redistest.Start(b).Addr())
			b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
			b.ReportAllocs()
			var failed atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				op := &limiter.Op{Checks: []limiter.Check{storetest.Check("rl:{user_123}:shop/storefront/per-user:60:", 1<<40)}}
				batch := []*limiter.Op{op}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				for pb.Next() {
					if store.Do(ctx, batch); op.Err != nil {
						failed.Add(1)
					}
				}
			})
			if n := failed.Load(); n > 0 {
				b.Fatalf("%d decisions failed", n)
			}
		})
	}
}
