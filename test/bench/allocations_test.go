//go:build bench

package bench

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/test/bench/measure"
	redistest "github.com/weir-dev/weir/test/redis"
)

// mostAllocations is how many allocations a proxied request may cost over a bare
// ReverseProxy.
const mostAllocations = 10

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
		Decider: measure.Limiter(t, measure.Store(t, redistest.Start(t).Addr()), measure.NeverReached)})
	if err != nil {
		t.Fatal(err)
	}
	without := testing.Benchmark(func(b *testing.B) { drive(b, bare, false) })
	with := testing.Benchmark(func(b *testing.B) { drive(b, weir, true) })
	more := with.AllocsPerOp() - without.AllocsPerOp()
	table := measure.NewTable("a proxied request", "through", "allocations", "bytes")
	table.Row("a bare ReverseProxy", without.AllocsPerOp(), without.AllocedBytesPerOp())
	table.Row("Weir, with Redis", with.AllocsPerOp(), with.AllocedBytesPerOp())
	table.Row("so the limit costs", more, with.AllocedBytesPerOp()-without.AllocedBytesPerOp())
	table.Print(t)
	measure.AtMost(t, "allocations that the limit costs", float64(more), mostAllocations)
}

// drive sends requests over one connection and reads each answer, which tells a
// quota where there is a limit.
func drive(b *testing.B, handler http.Handler, limited bool) {
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
		n, err := conn.Read(answer)
		if err != nil {
			b.Fatal(err)
		}
		isLimited := bytes.Contains(answer[:n], []byte("\r\nRateLimit: "))
		if !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 200 ")) || isLimited != limited {
			b.Fatalf("answer: %s", answer[:n])
		}
	}
}
