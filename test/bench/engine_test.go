//go:build bench

package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
	redistest "github.com/weir-dev/weir/test/redis"
)

// What must hold.
const (
	mostMatchingTime = 2 * time.Microsecond
	mostAllocations  = 10 // a proxied request, over a bare ReverseProxy
)

// compile makes a policy of a spec in YAML.
func compile(tb testing.TB, name, spec string) *policy.Policy {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte("metadata: {namespace: shop, name: " + name + "}\nspec:\n" + spec))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := policy.DecodePolicy(data)
	if err != nil {
		tb.Fatal(err)
	}
	compiled, err := policy.Compile(p, policy.Defaults{})
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

// rules is a set of n rules, each with its own match.
func rules(tb testing.TB, n int, match func(i int) string) *policy.Set {
	tb.Helper()
	var policies []*policy.Policy
	for i := 0; i < n; i += 32 {
		spec := "  selector: {}\n  rules:\n"
		for j := i; j < min(n, i+32); j++ {
			spec += fmt.Sprintf("  - {name: r%d, limit: 1, window: 1s, match: %s}\n", j, match(j))
		}
		policies = append(policies, compile(tb, fmt.Sprintf("p%d", i), spec))
	}
	return policy.NewSet(policies)
}

// TestMatching prints what it costs to match one request against many rules that
// do not match it.
func TestMatching(t *testing.T) {
	byHost := func(i int) string { return fmt.Sprintf(`{hosts: [h%d.example.com]}`, i) }
	byPath := func(i int) string { return fmt.Sprintf(`{paths: [{type: Prefix, value: /api/v%d}]}`, i) }
	byPattern := func(i int) string {
		return fmt.Sprintf(`{paths: [{type: RegularExpression, value: "/api/v%d/.*"}]}`, i)
	}
	req := &policy.Request{Method: "GET", Host: "other.example.com:80", Path: "/api//other/%41", Peer: netip.MustParseAddr("192.0.2.1")}
	t.Logf("%-32s %10s %12s", "rules", "ns", "allocations")
	for _, c := range []struct {
		name    string
		n       int
		match   func(int) string
		bounded bool
	}{
		{"by host", 1, byHost, true}, {"by host", 100, byHost, true}, {"by host", 10_000, byHost, true},
		{"by path", 1, byPath, true}, {"by path", 100, byPath, true}, {"by path", 10_000, byPath, true},
		{"by regular expression", 100, byPattern, false},
	} {
		set := rules(t, c.n, c.match)
		result := testing.Benchmark(func(b *testing.B) {
			var m policy.Matcher
			b.ReportAllocs()
			for b.Loop() {
				set.Match(req, &m)
			}
		})
		t.Logf("%-32s %10d %12d", fmt.Sprint(c.n, " ", c.name), result.NsPerOp(), result.AllocsPerOp())
		if c.bounded && (result.NsPerOp() > mostMatchingTime.Nanoseconds() || result.AllocsPerOp() > 0) {
			t.Errorf("%d rules %s: more than %v or an allocation", c.n, c.name, mostMatchingTime)
		}
	}
}

const perUser = `
  selector: {}
  rules:
  - {name: per-user, limit: 1000000000, window: 1h, key: [{type: Header, name: X-User-Id}]}
`

// limiterOn enforces one rule on a store.
func limiterOn(tb testing.TB, store limiter.Store) *limiter.Limiter {
	tb.Helper()
	l := limiter.New(limiter.Options{})
	l.Swap(&limiter.Snapshot{Set: policy.NewSet([]*policy.Policy{compile(tb, "bench", perUser)}),
		Backends: []*limiter.Backend{{Store: store, Budget: 10 * time.Second}}})
	return l
}

func storeOn(tb testing.TB, address string, pool int) *redisstore.Store {
	tb.Helper()
	store, err := redisstore.New(redisstore.Config{Addresses: []string{address}, Timeout: 10 * time.Second, DialTimeout: 10 * time.Second, PoolSize: pool})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// TestDecisionInMemory prints what one decision costs without a Redis.
func TestDecisionInMemory(t *testing.T) {
	l := limiterOn(t, memstore.New(time.Now, 0))
	req := &policy.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"), Header: map[string][]string{"X-User-Id": {"user_123"}}}
	result := testing.Benchmark(func(b *testing.B) {
		var d limiter.Decision
		b.ReportAllocs()
		for b.Loop() {
			l.Decide(context.Background(), req, &d)
		}
	})
	t.Logf("one decision on the memory store: %d ns, %d allocations", result.NsPerOp(), result.AllocsPerOp())
}

// TestAllocationsOverABareProxy sends the same request through a bare
// ReverseProxy and through Weir with a real Redis.
func TestAllocationsOverABareProxy(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer app.Close()
	upstream, err := url.Parse(app.URL)
	if err != nil {
		t.Fatal(err)
	}
	bare := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.SetXForwarded()
	}}
	weir, err := proxy.New(proxy.Config{Upstream: upstream, Logger: slog.New(slog.DiscardHandler),
		Decider: limiterOn(t, storeOn(t, redistest.Start(t).Addr(), 16))})
	if err != nil {
		t.Fatal(err)
	}
	without := testing.Benchmark(func(b *testing.B) { drive(b, bare) })
	with := testing.Benchmark(func(b *testing.B) { drive(b, weir) })
	more := with.AllocsPerOp() - without.AllocsPerOp()
	t.Logf("allocations a request: bare ReverseProxy %d, Weir %d, so %d more", without.AllocsPerOp(), with.AllocsPerOp(), more)
	if more > mostAllocations {
		t.Errorf("the limit costs %d allocations a request, want at most %d", more, mostAllocations)
	}
}

// drive sends requests over one connection and reads each answer.
func drive(b *testing.B, handler http.Handler) {
	b.Helper()
	front := httptest.NewServer(handler)
	defer front.Close()
	conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", front.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	request := []byte("GET /api/items?page=2 HTTP/1.1\r\nHost: shop.example\r\nX-User-Id: user_123\r\n\r\n")
	answer := make([]byte, 8192)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		// The answer is so short that it arrives in one piece.
		if _, err := conn.Read(answer); err != nil {
			b.Fatal(err)
		}
	}
}
