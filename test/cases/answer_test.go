package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// TestWhoWaitsAsLongAsToldGetsThrough sends from callers that begin at twenty
// moments of a window.
func TestWhoWaitsAsLongAsToldGetsThrough(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", "  rules: [{name: r, limit: 1, window: 2s, key: [{type: Header, name: X-User-Id}]}]\n"))
	client := s.from("127.0.0.2")
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 20 {
		group.Go(func() error {
			<-time.After(time.Duration(i) * 2 * time.Second / 20)
			return waitAsTold(ctx, client, fmt.Sprint("user", i))
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// waitAsTold sends until it is denied, waits as long as it is told, and sends again.
func waitAsTold(ctx context.Context, client *caller, user string) error {
	for {
		r, err := client.try(http.MethodGet, "/", "X-User-Id", user)
		if err != nil {
			return err
		}
		told := r.header.Get("Retry-After")
		if r.status == http.StatusOK {
			if told != "" {
				return errors.New("an allowed answer says Retry-After")
			}
			continue
		}
		seconds, err := strconv.Atoi(told)
		if err != nil || seconds < 1 || seconds > 2 {
			return fmt.Errorf("told to wait %q", told)
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		if r, err = client.try(http.MethodGet, "/", "X-User-Id", user); err != nil || r.status != http.StatusOK {
			return fmt.Errorf("after %d s: %d, %w", seconds, r.status, err)
		}
		return nil
	}
}

func TestResetIsAMomentAndRetryAfterAWait(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", "  rules: [{name: r, limit: 1, window: 1h, key: [{type: ClientIP}]}]\n"))
	number := s.remaining(3600, 30*time.Second, time.Hour)
	for i, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
		r := s.from("127.0.0.2").get("/")
		left := (number+1)*3600 - now(t, s.redis).Unix()
		if r.status != status || r.header.Get("X-RateLimit-Reset") != fmt.Sprint((number+1)*3600) {
			t.Errorf("request %d: status %d, reset %s, want %d", i+1, r.status, r.header.Get("X-RateLimit-Reset"), (number+1)*3600)
		}
		_, after, _ := strings.Cut(r.header.Get("RateLimit"), ";t=")
		wait, err := strconv.ParseInt(after, 10, 64)
		if err != nil || wait < left || wait > left+int64(patience.Seconds()) {
			t.Errorf("request %d: RateLimit %q, %d s before the end", i+1, r.header.Get("RateLimit"), left)
		}
		want := ""
		if status == http.StatusTooManyRequests {
			want = after
		}
		if got := r.header.Get("Retry-After"); got != want {
			t.Errorf("request %d: Retry-After %q, want %q", i+1, got, want)
		}
	}
}

// TestTheLimitThatDeniedIsTheOneThatIsTold has a short and a long window on one key.
func TestTheLimitThatDeniedIsTheOneThatIsTold(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", `  rules:
  - {name: burst, limit: 3, window: 1h, key: [{type: ClientIP}]}
  - {name: long, limit: 5, window: 366d, key: [{type: ClientIP}]}
`))
	number := s.remaining(3600, 30*time.Second, time.Hour)
	burst := fmt.Sprint("rl:{127.0.0.2}:shop/p/burst:3600:", number)
	caller := s.from("127.0.0.2")
	check := func(reason string, status int, limit string, long bool, rule string) {
		t.Helper()
		r := caller.get("/")
		wait, _ := strconv.Atoi(r.header.Get("Retry-After"))
		if r.status != status || r.header.Get("X-RateLimit-Limit") != limit || (wait > 3600) != long || !strings.Contains(r.body, rule) {
			t.Errorf("%s: %d, limit %s, Retry-After %d, %s", reason, r.status, r.header.Get("X-RateLimit-Limit"), wait, r.body)
		}
		if got := r.header.Get("RateLimit-Policy"); got != `"burst";q=3;w=3600, "long";q=5;w=31622400` {
			t.Errorf("%s: RateLimit-Policy %s", reason, got)
		}
	}
	for range 3 {
		check("the burst has least left", 200, "3", false, "hello")
	}
	check("the burst denies", 429, "3", false, `"rule":"burst"`)
	s.redis.Client().Del(t.Context(), burst)
	eventually(t, "the deleted counter admits again", func() bool { return caller.get("/").status == 200 })
	check("the long one has least left", 200, "5", false, "hello")
	check("the long one denies, while the burst has some left", 429, "5", true, `"rule":"long"`)
	s.redis.Client().SetArgs(t.Context(), burst, "3", redisKeepTTL)
	// The first caller is denied from memory, which knows of the long limit only.
	caller = s.from("127.0.0.3")
	s.redis.Client().Set(t.Context(), strings.Replace(burst, "0.2}", "0.3}", 1), "3", time.Hour)
	s.redis.Client().Set(t.Context(), fmt.Sprint("rl:{127.0.0.3}:shop/p/long:31622400:", s.window(31622400)), "5", time.Hour)
	check("both deny: the longer wait is told", 429, "5", true, `"violated-policies":["burst","long"]`)
}

func TestHeadersOffChangeNothingThatIsCounted(t *testing.T) {
	t.Parallel()
	app := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-RateLimit-Limit", "the application's") }
	on := open(t, setup{handler: app}, policy("p", perUser(2)))
	off := open(t, setup{handler: app}, policy("p", "  response: {headers: []}\n"+perUser(2)))
	for i, status := range []int{200, 200, 429} {
		shown, hidden := on.from("127.0.0.2").get("/", "X-User-Id", "bob"), off.from("127.0.0.2").get("/", "X-User-Id", "bob")
		if shown.status != status || hidden.status != status {
			t.Errorf("request %d: %d and %d, want %d", i+1, shown.status, hidden.status, status)
		}
		if diff := cmp.Diff([]string{"2"}, shown.header["X-Ratelimit-Limit"]); diff != "" {
			t.Errorf("request %d, with headers on: %s", i+1, diff)
		}
		var want []string
		if status == http.StatusOK {
			want = []string{"the application's"}
		}
		if diff := cmp.Diff(want, hidden.header["X-Ratelimit-Limit"]); diff != "" || hidden.header.Get("RateLimit") != "" {
			t.Errorf("request %d, with headers off: %s", i+1, diff)
		}
		if told := hidden.header.Get("Retry-After") != ""; told != (status == http.StatusTooManyRequests) {
			t.Errorf("request %d, with headers off: Retry-After %q", i+1, hidden.header.Get("Retry-After"))
		}
	}
	for _, s := range []*site{on, off} {
		s.wantAttempts(map[string]int{"bob": 3})
	}
	if diff := cmp.Diff(on.everyKey(), off.everyKey()); diff != "" {
		t.Errorf("counters differ: %s", diff)
	}
}

func TestBrowsersOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	const origin = "https://shop.example.com"
	script := []string{"Origin", origin}
	preflight := []string{"Origin", origin, "Access-Control-Request-Method", "GET"}
	t.Run("do not use up their quota by asking", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", "  response: {cors: {allowOrigins: ['"+origin+"']}}\n"+perAddress(2)))
		caller := s.from("127.0.0.2")
		for range 2 {
			asked, got := caller.send(http.MethodOptions, "/", preflight...), caller.get("/", script...)
			if asked.status != http.StatusOK || got.status != http.StatusOK {
				t.Errorf("answered %d and %d", asked.status, got.status)
			}
		}
		denied := caller.get("/", script...)
		exposed := denied.header.Get("Access-Control-Expose-Headers")
		if denied.status != http.StatusTooManyRequests || denied.header.Get("Access-Control-Allow-Origin") != origin ||
			!strings.Contains(exposed, "Retry-After") || denied.header.Get("Vary") != "Origin" {
			t.Errorf("a script reads %d, %v", denied.status, denied.header)
		}
		if other := caller.get("/", "Origin", "https://elsewhere.example"); other.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("another origin may read too: %v", other.header)
		}
	})
	t.Run("are counted where they ask without being a preflight", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", perAddress(2)))
		caller := s.from("127.0.0.2")
		for _, want := range []int{200, 200, 429} {
			if got := caller.send(http.MethodOptions, "/").status; got != want {
				t.Errorf("answered %d, want %d", got, want)
			}
		}
		if got := caller.send(http.MethodOptions, "/", preflight...).status; got != http.StatusOK {
			t.Errorf("a preflight is answered %d", got)
		}
	})
	t.Run("are counted for preflights where the policy says so", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", "  request: {preflight: Count}\n"+perAddress(1)))
		caller := s.from("127.0.0.2")
		if first, second := caller.send(http.MethodOptions, "/", preflight...).status, caller.get("/", script...).status; first != 200 || second != 429 {
			t.Errorf("answered %d and %d", first, second)
		}
	})
}
