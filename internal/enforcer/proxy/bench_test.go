package proxy_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/policy"
)

// allowAll decides nothing at all, so that what is measured is the proxy.
type allowAll struct{}

func (allowAll) Decide(_ context.Context, _ *policy.Request, d *limiter.Decision) {
	d.Outcome, d.Quotas = limiter.Allowed, d.Quotas[:0]
}

// BenchmarkProxy compares one request through a bare ReverseProxy, which does no
// more than set the forwarding fields, with one through the Server.
func BenchmarkProxy(b *testing.B) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "hello")
	}))
	defer app.Close()
	upstream, err := url.Parse(app.URL)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	defer transport.CloseIdleConnections()
	bare := &httputil.ReverseProxy{Transport: transport, BufferPool: pool{}, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.SetXForwarded()
	}}
	weir, err := proxy.New(proxy.Config{Upstream: upstream, Decider: allowAll{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare ReverseProxy", func(b *testing.B) { benchmark(b, bare) })
	b.Run("Weir", func(b *testing.B) { benchmark(b, weir) })
}

// pool hands out one buffer, since the benchmark has one request at a time.
type pool struct{}

var buffer = make([]byte, 32<<10)

func (pool) Get() []byte { return buffer }
func (pool) Put([]byte)  {}

func benchmark(b *testing.B, handler http.Handler) {
	b.Helper()
	front := httptest.NewServer(handler)
	defer front.Close()
	conn, err := net.Dial("tcp", front.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	request := []byte("GET /api/items?page=2 HTTP/1.1\r\nHost: shop.example\r\nX-User-Id: 42\r\nAccept: */*\r\n\r\n")
	answer := make([]byte, 4096)
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
