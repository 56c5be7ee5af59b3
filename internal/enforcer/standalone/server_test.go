package standalone

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	redistest "github.com/weir-dev/weir/test/redis"
)

// TestQuickstart sends what the README tells people to try.
func TestQuickstart(t *testing.T) {
	redis := redistest.Start(t)
	// The sample counts in its own backend; the number of the port is all that
	// differs.
	override := parse(t, "redis://"+redis.Addr())
	override.target.Budget, override.target.Config.Timeout = 5*time.Second, 5*time.Second
	r := start(t, Config{Policies: []string{"../../../config/samples/quickstart"}, Redis: override})
	window := func() int64 { return redis.Client().Time(t.Context()).Val().Unix() / 60 }

	// A window may turn meanwhile: then again with another user.
	for attempt := range 3 {
		user, number := fmt.Sprintf("user_%d", attempt), window()
		passed := r.passed(t, 104, user)
		last := r.get(t, "/", "X-User-Id", user)
		key := fmt.Sprintf("rl:{%s}:shop/storefront/per-user:60:%d", user, number)
		// Denials from memory are reported within a second.
		eventually(t, "the counter shows all attempts", func() bool {
			return redis.Client().Get(t.Context(), key).Val() == "105" || window() != number
		})
		attempts, ttl := redis.Client().Get(t.Context(), key).Val(), redis.Client().PTTL(t.Context(), key).Val()
		if window() != number {
			continue
		}
		if passed != 100 || last.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%d of 104 pass, then %s; want 100, then 429", passed, last.Status)
		}
		if attempts != "105" || ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s holds %q for %v; want 105, for a minute at most", key, attempts, ttl)
		}
		checkDenial(t, last, number)
		// Five of each attempt; an attempt that was cut short by a turn has fewer.
		if want := `weir_decisions_total{outcome="denied",policy="shop/storefront",rule="per-user"} 5`; attempt == 0 && !strings.Contains(r.page(t, "/metrics"), want) {
			t.Errorf("/metrics lacks %s", want)
		}
		return
	}
	t.Error("three times a window turned during 105 requests")
}

// checkDenial compares a 429 with what is promised to callers.
func checkDenial(t *testing.T, response *http.Response, number int64) {
	t.Helper()
	h := response.Header
	wait, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil || wait < 1 || wait > 60 {
		t.Fatalf("Retry-After: %q", h.Get("Retry-After"))
	}
	for name, want := range map[string]string{
		"Content-Type":          "application/problem+json",
		"Cache-Control":         "no-store",
		"X-Ratelimit-Limit":     "100",
		"X-Ratelimit-Remaining": "0",
		"X-Ratelimit-Reset":     fmt.Sprint((number + 1) * 60),
	} {
		if diff := cmp.Diff([]string{want}, h[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if want := `"per-user";q=100;w=60`; !strings.HasPrefix(h.Get("Ratelimit-Policy"), want) {
		t.Errorf("RateLimit-Policy: %q", h.Get("Ratelimit-Policy"))
	}
	if want := fmt.Sprintf(`"per-user";r=0;t=%d`, wait); !strings.HasPrefix(h.Get("Ratelimit"), want) {
		t.Errorf("RateLimit: %q, want %q", h.Get("Ratelimit"), want)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(body(t, response)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"error": "rate limit exceeded", "retry_after": float64(wait),
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Too Many Requests", "status": 429.,
		"policy": "shop/storefront", "rule": "per-user", "violated-policies": []any{"per-user"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEditsTakeEffectWithinAWindow(t *testing.T) {
	redis := redistest.Start(t)
	path := filepath.Join(t.TempDir(), "policies", "storefront.yaml")
	backend := backendText("default", redis.Addr(), "")
	write(t, path, policyText("storefront", 10, "")+backend)
	r := start(t, Config{Policies: []string{filepath.Dir(path)}})
	if n := r.passed(t, 15, "bob"); n != 10 {
		t.Errorf("%d of 15 pass, want 10", n)
	}
	connections := connectionsOf(t, redis)
	for _, step := range []struct {
		reason, content string
		want            int
	}{
		{"a comment changes nothing", policyText("storefront", 10, "") + backend + "# a comment\n", 0},
		{"a raised limit admits the difference", policyText("storefront", 14, "") + backend, 4},
		{"a broken file keeps the last good limit", policyText("storefront", 100, "  bogus: 1\n") + backend, 0},
		{"a mended file is taken", policyText("storefront", 16, "") + backend, 2},
		{"a lowered limit denies", policyText("storefront", 5, "") + backend, 0},
		{"Shadow denies nobody", policyText("storefront", 5, "  mode: Shadow\n") + backend, 20},
		{"and what it let through counts for nothing", policyText("storefront", 5, "") + backend, 0},
		{"Disabled denies nobody", policyText("storefront", 5, "  mode: Disabled\n") + backend, 20},
		{"another policy has a counter of its own", policyText("other", 5, "") + backend, 5},
		{"the first one's counter is still there", policyText("storefront", 17, "") + backend, 1},
		{"no policy limits nobody", "# nothing\n", 20},
	} {
		r.edit(t, path, step.content)
		if n := r.passed(t, 20, "bob"); n != step.want {
			t.Errorf("%s: %d of 20 pass, want %d", step.reason, n, step.want)
		}
	}
	if now := connectionsOf(t, redis); !strings.HasPrefix(now, connections) {
		t.Errorf("connections to Redis were %s, are %s", connections, now)
	}
	if want := `file=` + path + ` line=6 field=spec.bogus problem="no such field;`; strings.Count(r.log.String(), want) != 1 {
		t.Errorf("the log does not say once what is broken:\n%s", r.log)
	}
}

// connectionsOf lists the connections of enforcers, oldest first.
func connectionsOf(t *testing.T, redis *redistest.Server) string {
	t.Helper()
	own := redis.Client().ClientID(t.Context()).Val()
	var ids []string
	for line := range strings.Lines(redis.Client().ClientList(t.Context()).Val()) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		if id != fmt.Sprint(own) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " ")
}

func TestEditCutsNoStream(t *testing.T) {
	proceed := make(chan struct{})
	app := application(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 2 {
			_, _ = fmt.Fprintln(w, "event")
			_ = http.NewResponseController(w).Flush()
			<-proceed
		}
	})
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, policyText("storefront", 10, ""))
	r := start(t, Config{Policies: []string{path}, Redis: parse(t, Embedded), Upstream: app})
	stream := bufio.NewReader(r.get(t, "/").Body)
	if line, err := stream.ReadString('\n'); line != "event\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	r.edit(t, path, policyText("storefront", 0, ""))
	if response := r.get(t, "/"); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after the edit: %s", response.Status)
	}
	proceed <- struct{}{}
	if line, err := stream.ReadString('\n'); line != "event\n" {
		t.Errorf("after the edit the stream gives %q, %v", line, err)
	}
	proceed <- struct{}{}
}

func TestVanishedDirectoryKeepsTheLastGoodSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	write(t, dir+"/a.yaml", policyText("storefront", 1, ""))
	r := start(t, Config{Policies: []string{dir}, Redis: parse(t, Embedded)})
	rename(t, dir, dir+".away")
	eventually(t, "it is logged", func() bool { return strings.Contains(r.log.String(), "policies are out of reach") })
	if n := r.passed(t, 3, "bob"); n != 1 {
		t.Errorf("%d of 3 pass, want 1", n)
	}
	rename(t, dir+".away", dir)
	eventually(t, "they are back", func() bool { return strings.Count(r.log.String(), "policies are in force") == 2 })
	write(t, dir+"/a.yaml", "")
	eventually(t, "an emptied file ends its policy", func() bool { return r.passed(t, 1, "bob") == 1 })
}

// TestTwoPoliciesOnOneApplication is case J04: a limit for each caller, and one
// on signing in for all callers together.
func TestTwoPoliciesOnOneApplication(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.yaml", `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: callers, namespace: shop}
spec:
  selector: {}
  clientAddress: {trustedProxies: [127.0.0.1], header: CF-Connecting-IP}
  rules: [{name: per-address, limit: 4, window: 366d, key: [{type: ClientIP}]}]
---
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: sign-in, namespace: shop}
spec:
  domain: sign-in
  rules: [{name: all, limit: 3, window: 366d, match: {paths: [{type: Exact, value: /login}]}}]
`)
	r := start(t, Config{Policies: []string{dir}, Redis: parse(t, Embedded)})
	var got []int
	for _, request := range []struct{ path, from string }{
		{"/login", "192.0.2.1"}, {"/login", "192.0.2.1"}, {"/login", "192.0.2.2"}, {"/login", "192.0.2.1"}, // the fourth to sign in
		{"/", "192.0.2.1"}, {"/", "192.0.2.1"}, {"/", "192.0.2.1"}, // which was not charged to its address
		{"/", "192.0.2.2"},
	} {
		got = append(got, r.get(t, request.path, "CF-Connecting-IP", request.from).StatusCode)
	}
	if diff := cmp.Diff([]int{200, 200, 200, 429, 200, 200, 429, 200}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDrainLetsRequestsEnd(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	app := application(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-proceed
		_, _ = fmt.Fprint(w, "done")
	})
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, policyText("storefront", 10, ""))
	r := start(t, Config{Policies: []string{path}, Redis: parse(t, Embedded), Upstream: app})
	if got := r.page(t, "/readyz"); got != "ok\n" {
		t.Errorf("before draining readyz says %q", got)
	}
	answer := make(chan string)
	go func() { answer <- body(t, r.get(t, "/")) }()
	<-arrived
	ended := make(chan error)
	go func() { ended <- r.stop() }()
	eventually(t, "readiness ends", func() bool { return r.page(t, "/readyz") == "draining\n" })
	close(proceed)
	if got := <-answer; got != "done" {
		t.Errorf("the request under way got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("run ends with %v", err)
	}
}

func TestBusyAddressNamesTheFlag(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, policyText("storefront", 10, ""))
	r := start(t, Config{Policies: []string{path}, Redis: parse(t, Embedded)})
	for flag, config := range map[string]Config{
		"--listen":       {Listen: r.Addr(), AdminListen: "127.0.0.1:0"},
		"--admin-listen": {Listen: "127.0.0.1:0", AdminListen: r.Addr()},
	} {
		config.Policies, config.Redis, config.Upstream, config.Logger = r.config.Policies, r.config.Redis, r.config.Upstream, r.config.Logger
		if _, err := New(t.Context(), config); err == nil || !strings.HasSuffix(err.Error(), "choose another address with "+flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
