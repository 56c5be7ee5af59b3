package cases

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/enforcer/standalone"
)

func TestTheFirstRequestsCountDownToZeroAndNoFurther(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", perAddress(3)))
	for i, want := range []struct {
		status    int
		remaining string
	}{{200, "2"}, {200, "1"}, {200, "0"}, {429, "0"}, {429, "0"}} {
		r := s.from("127.0.0.2").get("/")
		if r.status != want.status || r.header.Get("X-RateLimit-Remaining") != want.remaining {
			t.Errorf("request %d: %d with %s left, want %v", i+1, r.status, r.header.Get("X-RateLimit-Remaining"), want)
		}
	}
}

// TestACounterThatLostItsExpiry replays what kept people locked out over restarts
// of Redis.
func TestACounterThatLostItsExpiry(t *testing.T) {
	t.Parallel()
	const repairs = `weir_counter_repairs_total{backend="shop/default"}`
	t.Run("is given one, also after a restart", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", perAddress(5)))
		caller := s.from("127.0.0.2")
		caller.get("/")
		key := s.keys()[0]
		s.redis.Client().Set(t.Context(), key, 999, 0)
		s.redis.Client().Save(t.Context())
		s.redis.Stop()
		s.redis.Run()
		eventually(t, "it is counted again", func() bool { return caller.get("/").header.Get("X-RateLimit-Limit") != "" })
		if ttl := s.redis.Client().PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 366*24*time.Hour {
			t.Errorf("the counter lives for %v", ttl)
		}
		if got := s.metric(repairs); got != 1 {
			t.Errorf("%d repairs are reported, want 1", got)
		}
	})
	t.Run("denies for no longer than its window", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", "  rules: [{name: r, limit: 5, window: 3s, key: [{type: ClientIP}]}]\n"))
		caller := s.from("127.0.0.2")
		number := s.remaining(3, 2*time.Second, 3*time.Second)
		key := fmt.Sprint("rl:{127.0.0.2}:shop/p/r:3:", number)
		s.redis.Client().Set(t.Context(), key, 999, 0)
		if got := caller.get("/").status; got != http.StatusTooManyRequests {
			t.Errorf("a full counter is answered %d", got)
		}
		eventually(t, "the window turns", func() bool { return s.window(3) > number })
		if got := caller.get("/").status; got != http.StatusOK {
			t.Errorf("a window later: %d", got)
		}
		eventually(t, "the old counter is gone", func() bool { return s.redis.Client().Exists(t.Context(), key).Val() == 0 })
	})
}

// TestSteadyTrafficIsAllowedInEveryWindow is what fails where each hit renews the
// expiry: 10 pass once, then none.
func TestSteadyTrafficIsAllowedInEveryWindow(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", "  rules: [{name: r, limit: 10, window: 2s, key: [{type: ClientIP}]}]\n"))
	caller := s.from("127.0.0.2")
	type tally struct{ allowed, denied int }
	windows := map[string]tally{}
	pace := time.NewTicker(2 * time.Second / 15)
	defer pace.Stop()
	for range 4 * 15 {
		r := caller.get("/")
		w := windows[r.header.Get("X-RateLimit-Reset")]
		if r.status == http.StatusOK {
			w.allowed++
		} else {
			w.denied++
		}
		windows[r.header.Get("X-RateLimit-Reset")] = w
		<-pace.C
	}
	for end, w := range windows {
		if w.allowed != min(10, w.allowed+w.denied) {
			t.Errorf("the window that ends at %s allows %d and denies %d", end, w.allowed, w.denied)
		}
	}
	if len(windows) < 4 {
		t.Errorf("%d windows were seen", len(windows))
	}
}

func TestTheHighestLimitIsExact(t *testing.T) {
	t.Parallel()
	const highest = 9007199254740991
	s := open(t, setup{}, policy("p", strings.Replace(perAddress(highest), "366d", "30d", 1)))
	caller := s.from("127.0.0.2")
	caller.get("/")
	key := s.keys()[0]
	if ttl := s.redis.Client().PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 30*24*time.Hour {
		t.Errorf("the counter lives for %v", ttl)
	}
	s.redis.Client().SetArgs(t.Context(), key, fmt.Sprint(highest-2), redisKeepTTL)
	for i, want := range []struct {
		status    int
		remaining string
	}{{200, "1"}, {200, "0"}, {429, "0"}, {429, "0"}, {429, "0"}} {
		r := caller.get("/")
		if r.status != want.status || r.header.Get("X-RateLimit-Limit") != fmt.Sprint(highest) || r.header.Get("X-RateLimit-Remaining") != want.remaining {
			t.Errorf("request %d: %d, %s of %s left", i+1, r.status, r.header.Get("X-RateLimit-Remaining"), r.header.Get("X-RateLimit-Limit"))
		}
	}
}

func TestLimitsThatCannotBeCountedAreRefused(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "1.5", "-1", `"100"`, "null"} {
		file := t.TempDir() + "/policies.yaml"
		write(t, file, policy("p", "  rules: [{name: r, limit: "+limit+", window: 1m}]\n"))
		_, err := standalone.New(t.Context(), standalone.Config{Policies: []string{file}, Upstream: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}})
		if err == nil || !strings.Contains(err.Error(), "spec.rules[0].limit") {
			t.Errorf("limit %s: %v", limit, err)
		}
	}
}

func TestARefundOfAnUnknownCounterLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", perAddress(3)))
	store, err := redisstore.New(redisstore.Config{Addresses: []string{s.redis.Addr()}, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	do := func(kind limiter.Kind, key string, cost uint64) (left int64) {
		check := storetest.Check(key, 2)
		check.Cost = cost
		return storetest.Do(t, store, kind, check).Checks[0].Remaining()
	}
	do(limiter.Refund, "unknown:", 3)
	do(limiter.Look, "unknown:", 0)
	if keys := s.everyKey(); len(keys) != 0 {
		t.Errorf("there are %q", keys)
	}
	for range 4 {
		do(limiter.Charge, "known:", 1) // twice over the limit
	}
	if got := do(limiter.Refund, "known:", 1); got != 1 {
		t.Errorf("a refund of a full counter leaves %d", got)
	}
	if got := do(limiter.Refund, "known:", 3); got != 2 {
		t.Errorf("a refund beyond zero leaves %d of 2", got)
	}
	for _, key := range s.everyKey() {
		if ttl := s.redis.Client().PTTL(context.Background(), key).Val(); ttl <= 0 {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
}

func TestLimitZeroBlocks(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", perAddress(0)))
	for range 2 {
		r := s.from("127.0.0.2").get("/")
		if r.status != http.StatusTooManyRequests || r.header.Get("X-RateLimit-Limit") != "0" || r.header.Get("X-RateLimit-Remaining") != "0" || r.header.Get("Retry-After") == "" {
			t.Errorf("answered %d, %v", r.status, r.header)
		}
	}
	if seen := s.app.requests(); len(seen) != 0 {
		t.Errorf("%d requests reach the application", len(seen))
	}
}

// TestAroundTheTurnOfAWindow shows what fixed windows allow: the rest of one and
// the whole of the next, and no more than the limit within either.
func TestAroundTheTurnOfAWindow(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", "  rules: [{name: r, limit: 5, window: 4s, key: [{type: ClientIP}]}]\n"))
	caller := s.from("127.0.0.2")
	s.remaining(4, time.Second, 1500*time.Millisecond)
	passed := map[string]int{}
	var first string
	for range 40 {
		r := caller.get("/")
		end := r.header.Get("X-RateLimit-Reset")
		if first == "" {
			first = end
		}
		if r.status == http.StatusOK {
			passed[end]++
		}
		if end != first && passed[end] == 5 {
			break
		}
		if passed[end] >= 5 {
			eventually(t, "the window turns", func() bool { return fmt.Sprint(now(t, s.redis).Unix()) >= end })
		}
	}
	if len(passed) != 2 {
		t.Fatalf("requests passed in %d windows: %v", len(passed), passed)
	}
	for end, n := range passed {
		if n != 5 {
			t.Errorf("the window that ends at %s let %d pass, want 5", end, n)
		}
	}
}
