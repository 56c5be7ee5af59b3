package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/enforcer/proxy"
)

// failures collects what the Observer is told.
func failures(kinds chan proxy.FailureKind) func(*proxy.Config) {
	return func(c *proxy.Config) { c.Observer.Failed = func(k proxy.FailureKind) { kinds <- k } }
}

// closedAddress is one where nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	listener.Close()
	return "http://" + listener.Addr().String()
}

// answering is an application that answers with these bytes.
func answering(answer string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return startRawApp(t, answer)
	}
}

func TestFailuresOfTheApplication(t *testing.T) {
	for name, c := range map[string]struct {
		upstream func(*testing.T) string
		status   int
		retry    string
		kind     proxy.FailureKind
	}{
		"nobody listens": {closedAddress, 503, "1", proxy.Refused},
		"nothing leads there": {func(*testing.T) string { return "http://255.255.255.255:80" },
			502, "", proxy.Unreachable},
		"it closes without an answer": {answering(""),
			502, "", proxy.Broken},
		"it speaks something else": {answering("SSH-2.0-OpenSSH\r\n"),
			502, "", proxy.Broken},
		"its status is none": {answering("HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n"),
			502, "", proxy.Broken},
		"its lengths differ": {answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nHello"),
			502, "", proxy.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := make(chan proxy.FailureKind, 1)
			p := startProxy(t, c.upstream(t), failures(kinds))
			res := get(t, newClient(t, false), p.url("/"))
			var body struct{ Status int }
			if err := json.Unmarshal([]byte(readAll(t, res)), &body); err != nil || body.Status != c.status {
				t.Errorf("body: status %d, %v", body.Status, err)
			}
			got := []string{fmt.Sprint(res.StatusCode), res.Header.Get("Retry-After"), res.Header.Get("Content-Type"),
				res.Header.Get("X-Ratelimit-Remaining"), string(<-kinds)}
			want := []string{fmt.Sprint(c.status), c.retry, "application/problem+json", "42", string(c.kind)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if n := len(p.requests()); n != 1 {
				t.Errorf("%d decisions, want 1", n)
			}
		})
	}
}

func TestAClientThatLeavesIsNoFailureOfTheApplication(t *testing.T) {
	entered, left := make(chan struct{}, 1), make(chan struct{}, 1)
	app := startApp(t, func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	})
	kinds := make(chan proxy.FailureKind, 1)
	p := startProxy(t, app, failures(kinds))
	clients(t, func(t *testing.T, client *http.Client) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url("/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-entered
			cancel()
		}()
		if res, err := client.Do(req); err == nil {
			res.Body.Close()
			t.Error("a request that was given up was answered")
		}
		<-left // the application is told
		if kind := <-kinds; kind != proxy.ClientGone {
			t.Errorf("kind %q", kind)
		}
	})
}

func TestABodyThatBreaksIsTheClientsFault(t *testing.T) {
	kinds := make(chan proxy.FailureKind, 1)
	app := startApp(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	p := startProxy(t, app, failures(kinds))
	conn := dial(t, p.addr)
	conn.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\nzz\r\n")
	res := conn.answer("POST")
	if res.StatusCode != http.StatusBadRequest || !res.Close || <-kinds != proxy.BodyInvalid {
		t.Errorf("status %d, closes %v", res.StatusCode, res.Close)
	}
}

// TestAConnectionThatTheApplicationClosed lets the application close each
// connection after one answer without saying so, as it does when it was idle for
// long. Requests that must not be sent twice are not.
func TestAConnectionThatTheApplicationClosed(t *testing.T) {
	var received atomic.Int64
	closed := make(chan struct{})
	app := acceptEach(t, func(conn net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
			received.Add(1)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			conn.Close()
			closed <- struct{}{}
		}
	})
	p := startProxy(t, app)
	client := newClient(t, false)
	const count = 20
	for i := range count {
		method, body := http.MethodGet, io.Reader(http.NoBody)
		if i%2 == 1 {
			method, body = http.MethodPost, strings.NewReader("body")
		}
		req, err := http.NewRequestWithContext(t.Context(), method, p.url("/"), body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			<-closed
		}
	}
	if got := int(received.Load()); got > count || len(p.requests()) != count {
		t.Errorf("%d sent, %d decided, %d received", count, len(p.requests()), got)
	}
}

func TestSlowHeaderFieldsAreCut(t *testing.T) {
	p := startProxy(t, startRecorder(t).url, func(c *proxy.Config) { c.Limits.ReadHeaderTimeout = 50 * time.Millisecond })
	for name, begin := range map[string]string{
		"nothing": "", "a part of a line": "GET / HT", "a part of the fields": "GET / HTTP/1.1\r\nHost: a\r\nX-",
		"a part of HTTP/2's greeting": "PRI * HTTP/2.0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, p.addr)
			conn.send(begin)
			if rest, err := io.ReadAll(conn.r); err != nil {
				t.Errorf("received %q, then %v; want the end", rest, err)
			}
		})
	}
	if len(p.requests()) != 0 {
		t.Error("a request that never came was decided")
	}
}

func TestIdleConnectionsAreCut(t *testing.T) {
	p := startProxy(t, startRecorder(t).url, func(c *proxy.Config) { c.Limits.IdleTimeout = 50 * time.Millisecond })
	conn := dial(t, p.addr)
	conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	conn.answer("GET")
	if _, err := conn.r.ReadByte(); err != io.EOF {
		t.Errorf("received %v, want the end", err)
	}
}

func TestNoTimeoutCutsAStream(t *testing.T) {
	short := 20 * time.Millisecond
	pace := make(chan time.Time)
	app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintln(w, lines.Text())
			_ = http.NewResponseController(w).Flush()
		}
	})
	p := startProxy(t, app, func(c *proxy.Config) {
		c.Limits = proxy.Limits{ReadHeaderTimeout: short, IdleTimeout: short, UnreadBodyTimeout: short, PingInterval: short}
	})
	clients(t, func(t *testing.T, client *http.Client) {
		t.Helper()
		body, out := io.Pipe()
		go func() {
			for range 5 {
				<-pace // longer than each limit
				fmt.Fprintln(out, "line")
			}
			out.Close()
		}()
		ticker := time.NewTicker(5 * short)
		defer ticker.Stop()
		go func() {
			for range 5 {
				pace <- <-ticker.C
			}
		}()
		res, err := client.Post(p.url("/"), "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, res); got != strings.Repeat("line\n", 5) {
			t.Errorf("received %q", got)
		}
	})
}

func TestTooManyHeaderBytesAreRefused(t *testing.T) {
	p := startProxy(t, startRecorder(t).url)
	for size, want := range map[int]int{60 << 10: 200, 200 << 10: 431} {
		conn := dial(t, p.addr)
		conn.send("GET / HTTP/1.1\r\nHost: a\r\nX-Tenant: ")
		go func() { _, _ = io.CopyN(conn, letters{}, int64(size)); _, _ = io.WriteString(conn, "\r\n\r\n") }()
		if res := conn.answer("GET"); res.StatusCode != want {
			t.Errorf("%d bytes: status %d, want %d", size, res.StatusCode, want)
		}
	}
}

// letters is a text without an end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestInFlightIsCounted(t *testing.T) {
	var inFlight atomic.Int64
	entered, leave := make(chan struct{}), make(chan struct{})
	app := startApp(t, func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})
	p := startProxy(t, app, func(c *proxy.Config) {
		c.Observer.InFlight = func(delta int) { inFlight.Add(int64(delta)) }
	})
	done := make(chan error)
	client := newClient(t, true)
	for range 3 {
		go func() {
			res, err := client.Get(p.url("/"))
			if err == nil {
				res.Body.Close()
			}
			done <- err
		}()
	}
	for range 3 {
		<-entered
	}
	if got := inFlight.Load(); got != 3 {
		t.Errorf("%d at once, want 3", got)
	}
	close(leave)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
