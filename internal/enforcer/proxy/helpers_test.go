package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/policy"
)

// patience is how long a test waits for what must come. It is no measurement.
const patience = 20 * time.Second

var rule = &policy.Rule{
	Name: "per-user", Limit: 100, Window: 60,
	Policy: &policy.Policy{
		Name:     policy.Name{Namespace: "shop", Name: "storefront"},
		Response: policy.Response{Standard: true, Legacy: true},
	},
}

// decider allows everything with 42 left, unless refuse says otherwise, and
// remembers what it was asked.
type decider struct {
	refuse func(*policy.Request) bool

	mu   sync.Mutex
	seen []policy.Request
}

func (d *decider) Decide(_ context.Context, req *policy.Request, out *limiter.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := *req
	kept.Header = maps.Clone(req.Header)
	d.seen = append(d.seen, kept)
	out.Outcome, out.Cause, out.RetryAfter = limiter.Allowed, nil, 0
	out.Quotas = append(out.Quotas[:0], limiter.Quota{Rule: rule, Remaining: 42, Reset: 1796076018, Wait: 18})
	if d.refuse != nil && d.refuse(req) {
		out.Outcome, out.Cause, out.RetryAfter = limiter.Denied, rule, 18
		out.Quotas[0].Remaining, out.Quotas[0].Over = 0, true
	}
}

// requests returns what was decided so far.
func (d *decider) requests() []policy.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]policy.Request(nil), d.seen...)
}

func denyAll(*policy.Request) bool { return true }

// running is a proxy that listens.
type running struct {
	*decider
	server *proxy.Server
	addr   string
}

func (p *running) url(path string) string { return "http://" + p.addr + path }

// startProxy runs a proxy in front of upstream until the test ends.
func startProxy(t *testing.T, upstream string, options ...func(*proxy.Config)) *running {
	t.Helper()
	return startProxyOn(t, listen(t), upstream, options...)
}

func startProxyOn(t *testing.T, listener net.Listener, upstream string, options ...func(*proxy.Config)) *running {
	t.Helper()
	address, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	d := &decider{}
	config := proxy.Config{Upstream: address, Decider: d, Logger: slog.New(slog.DiscardHandler)}
	for _, option := range options {
		option(&config)
	}
	server, err := proxy.New(config)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // cut at once
		_ = server.Shutdown(ended)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return &running{decider: d, server: server, addr: listener.Addr().String()}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func trusting(prefix string) func(*proxy.Config) {
	return func(c *proxy.Config) { c.Trusts = netip.MustParsePrefix(prefix).Contains }
}

// startApp runs an application that speaks HTTP/1.1 and cleartext HTTP/2.
func startApp(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	app := httptest.NewUnstartedServer(handler)
	app.Config.Protocols = new(http.Protocols)
	app.Config.Protocols.SetHTTP1(true)
	app.Config.Protocols.SetUnencryptedHTTP2(true)
	app.Config.DisableGeneralOptionsHandler = true
	app.Start()
	t.Cleanup(func() {
		app.CloseClientConnections()
		app.Close()
	})
	return app.URL
}

// recorder is an application that remembers the first line and the fields of each
// request just as they arrived, answers 200 and closes.
type recorder struct {
	url string

	mu    sync.Mutex
	heads []string
}

func startRecorder(t *testing.T) *recorder {
	t.Helper()
	rec := &recorder{}
	rec.url = acceptEach(t, func(conn net.Conn) {
		head, err := readHead(bufio.NewReader(conn))
		if err != nil {
			return
		}
		rec.mu.Lock()
		rec.heads = append(rec.heads, head)
		rec.mu.Unlock()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	return rec
}

// startRawApp runs an application that answers with these bytes, and closes.
func startRawApp(t *testing.T, answer string) string {
	t.Helper()
	return acceptEach(t, func(conn net.Conn) {
		if _, err := readHead(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, answer)
		}
	})
}

// acceptEach listens, and serves and closes each connection, until the test ends.
func acceptEach(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener := listen(t)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		group.Wait()
	})
	return "http://" + listener.Addr().String()
}

// take returns the heads that arrived, and forgets them.
func (rec *recorder) take() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	heads := rec.heads
	rec.heads = nil
	return heads
}

// readHead reads up to and with the empty line.
func readHead(r *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String(), err
		}
	}
}

// rawConn is a client that sends bytes.
type rawConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &rawConn{Conn: conn, t: t, r: bufio.NewReader(conn)}
}

func (c *rawConn) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one answer whole.
func (c *rawConn) answer(method string) *http.Response {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("read the answer: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("read the answer's body: %v", err)
	}
	res.Body = io.NopCloser(strings.NewReader(string(body)))
	return res
}

// statuses reads answers until the proxy closes the connection. After the first
// count answers it tells the proxy that nothing follows.
func (c *rawConn) statuses(count int) []int {
	c.t.Helper()
	var all []int
	for {
		res, err := http.ReadResponse(c.r, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.t.Fatal("the connection stays open")
		}
		if err != nil {
			return all
		}
		_, _ = io.Copy(io.Discard, res.Body)
		all = append(all, res.StatusCode)
		if tcp, ok := c.Conn.(*net.TCPConn); ok && len(all) == count {
			_ = tcp.CloseWrite()
		}
	}
}

// newClient returns a client for one protocol, with connections of its own.
func newClient(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true, ExpectContinueTimeout: patience}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// clients runs a test by HTTP/1.1 and by HTTP/2.
func clients(t *testing.T, test func(t *testing.T, client *http.Client)) {
	t.Helper()
	t.Run("by HTTP/1.1", func(t *testing.T) { test(t, newClient(t, false)) })
	t.Run("by HTTP/2", func(t *testing.T) { test(t, newClient(t, true)) })
}

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("read the body: %v", err)
	}
	return string(body)
}

func sorted(h http.Header) []string { return slices.Sorted(maps.Keys(h)) }

func denyPath(path string) func(*policy.Request) bool {
	return func(r *policy.Request) bool { return r.Path == path }
}
