package standalone

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
	"github.com/weir-dev/weir/internal/policy"
	redistest "github.com/weir-dev/weir/test/redis"
)

// long makes windows that do not turn during a test.
var long = strings.NewReplacer("window: 1m", "window: 366d")

// enforce starts enforcing a folder with its counters in a Redis.
func enforce(t *testing.T, dir, redis string) (*Enforcement, *limiter.Limiter, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	m := metrics.New(prometheus.NewRegistry())
	l := limiter.New(limiter.Options{Observer: m})
	e, err := New(Options{Paths: []string{dir}, Redis: redis, Metrics: m,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	e.reload()
	return e, l, &log
}

// admitted sends requests of one user and counts those that pass.
func admitted(t *testing.T, l *limiter.Limiter, user string, requests int) (passed int) {
	t.Helper()
	for range requests {
		var d limiter.Decision
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		l.Decide(ctx, &policy.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"),
			Header: map[string][]string{"X-User-Id": {user}}}, &d)
		cancel()
		if d.Outcome == limiter.Allowed {
			passed++
		}
	}
	return passed
}

// slow gives decisions a generous budget, so that a busy machine fails no test.
const slow = `---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: default, namespace: shop}
spec: {mode: Standalone, addresses: ["%s"], timeouts: {decision: 5s, dial: 5s}}
`

func TestEditsTakeEffectWithinAWindow(t *testing.T) {
	server := redistest.Start(t)
	dir := t.TempDir()
	content := func(limit string) string {
		return long.Replace(strings.Replace(good, "limit: 100", limit, 1)) + fmt.Sprintf(slow, server.Addr())
	}
	path := write(t, dir, "policy.yaml", content("limit: 100"))
	e, l, log := enforce(t, dir, "")
	if n := admitted(t, l, "bob", 105); n != 100 {
		t.Errorf("%d of 105 pass, want 100", n)
	}
	key := fmt.Sprint("rl:{bob}:shop/storefront/per-user:31622400:", time.Now().Unix()/31622400)
	if attempts := server.Client().Get(t.Context(), key).Val(); attempts != "105" {
		t.Errorf("%s holds %q, want 105", key, attempts)
	}
	if ttl := server.Client().TTL(t.Context(), key).Val(); ttl <= 0 || ttl > 31622400*time.Second {
		t.Errorf("the key lives %v", ttl)
	}
	stores := len(e.stores)
	for _, step := range []struct {
		reason, content string
		want            int
	}{
		{"a comment changes nothing", content("limit: 100") + "# a comment\n", 0},
		{"a raised limit admits the difference", content("limit: 110"), 10},
		{"a broken file keeps the last good limit", content("limit: none"), 0},
		{"a mended file is taken", content("limit: 115"), 5},
		{"a lowered limit denies", content("limit: 50"), 0},
		{"Shadow denies nobody", strings.Replace(content("limit: 50"), "selector: {}", "selector: {}\n  mode: Shadow", 1), 20},
		{"back to enforcing", content("limit: 50"), 0},
	} {
		write(t, dir, filepath.Base(path), step.content)
		e.reload()
		if n := admitted(t, l, "bob", 20); n != step.want {
			t.Errorf("%s: %d of 20 pass, want %d", step.reason, n, step.want)
		}
	}
	if len(e.stores) != stores {
		t.Errorf("%d stores after the edits, %d before", len(e.stores), stores)
	}
	if !strings.Contains(log.String(), path+":8: spec.rules.limit") {
		t.Errorf("the log does not say where the file is broken: %s", log)
	}
}

func TestUnblockingStartsAnew(t *testing.T) {
	server := redistest.Start(t)
	dir := t.TempDir()
	write(t, dir, "policy.yaml", long.Replace(good)+fmt.Sprintf(slow, server.Addr()))
	_, l, _ := enforce(t, dir, "")
	admitted(t, l, "bob", 150)
	server.Client().Del(t.Context(), fmt.Sprint("rl:{bob}:shop/storefront/per-user:31622400:", time.Now().Unix()/31622400))
	if n := admitted(t, l, "bob", 150); n != 100 {
		t.Errorf("%d pass after the counter was deleted, want 100", n)
	}
}

func TestVanishedFolderKeepsTheLastGoodSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "policy.yaml", long.Replace(good))
	e, _, log := enforce(t, dir, Embedded)
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	e.reload()
	e.reload()
	if len(e.Set().Policies()) != 1 {
		t.Error("the policies are gone")
	}
	if n := strings.Count(log.String(), "policies are broken"); n != 1 {
		t.Errorf("the log says so %d times: %s", n, log)
	}
}

func TestDeletedFileEndsItsPolicy(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "policy.yaml", long.Replace(good))
	e, l, _ := enforce(t, dir, Embedded)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	e.reload()
	if n := admitted(t, l, "bob", 150); n != 150 {
		t.Errorf("%d of 150 pass without a policy", n)
	}
}

func TestSecretsAreToldToNobody(t *testing.T) {
	server := redistest.Start(t)
	server.Client().ConfigSet(t.Context(), "requirepass", "right")
	dir := t.TempDir()
	write(t, dir, "policy.yaml", strings.Replace(good, "X-User-Id", "Authorization", 1))
	_, l, log := enforce(t, dir, "redis://weir:canary-password@"+server.Addr()+"/0")
	admitted(t, l, "canary-user", 3)
	if strings.Contains(log.String(), "canary") {
		t.Errorf("the log tells: %s", log)
	}
	if _, err := New(Options{Redis: "redis://weir:canary-password@:port"}, l); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a wrong URL: %v", err)
	}
}
