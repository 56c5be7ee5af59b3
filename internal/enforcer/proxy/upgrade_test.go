package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/weir-dev/weir/internal/enforcer/proxy"
)

// echoSocket is an application that sends each message back, and tells in a field
// of its answer who is asking.
func echoSocket(t *testing.T) string {
	t.Helper()
	return startApp(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Asked-For", strings.Join(r.Header["X-Forwarded-For"], "|"))
		w.Header().Set("X-RateLimit-Remaining", "7")
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			kind, message, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			if err := conn.Write(context.Background(), kind, message); err != nil {
				return
			}
		}
	})
}

func TestWebSocketsPassAndCountOnce(t *testing.T) {
	for _, protocol := range []proxy.Protocol{proxy.Auto, proxy.HTTP1, proxy.HTTP2} {
		p := startProxy(t, echoSocket(t), trusting("127.0.0.0/8"), func(c *proxy.Config) { c.Protocol = protocol })
		options := &websocket.DialOptions{HTTPHeader: http.Header{"X-Forwarded-For": {"203.0.113.9"}}}
		conn, res, err := websocket.Dial(t.Context(), p.url("/socket"), options)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header["X-Ratelimit-Remaining"]; fmt.Sprint(got) != "[42]" {
			t.Errorf("the answer 101 carries the quota %v, want 42 once", got)
		}
		if got := res.Header.Get("X-Asked-For"); got != "203.0.113.9, 127.0.0.1" {
			t.Errorf("the application was asked for %q", got)
		}
		for i := range 10 {
			message := strings.Repeat("m", i*1000)
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := conn.Read(t.Context()); err != nil || string(got) != message {
				t.Fatalf("received %d bytes, %v; want %d", len(got), err, len(message))
			}
		}
		if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Errorf("close: %v", err)
		}
		if got := len(p.requests()); got != 1 {
			t.Errorf("%d decisions, want 1", got)
		}
	}
}

func TestARefusedWebSocketIsAnsweredPlainly(t *testing.T) {
	p := startProxy(t, echoSocket(t))
	p.refuse = denyAll
	_, res, err := websocket.Dial(t.Context(), p.url("/"), nil)
	if err == nil || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "18" {
		t.Errorf("received %v, %v; want 429", res, err)
	}
}

func TestAnApplicationThatDoesNotUpgradeAnswersAsEver(t *testing.T) {
	p := startProxy(t, startApp(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	_, res, err := websocket.Dial(t.Context(), p.url("/"), nil)
	if err == nil || res.StatusCode != http.StatusTeapot || res.Header.Get("X-Ratelimit-Remaining") != "42" {
		t.Errorf("received %v, %v; want the application's answer with the quota", res, err)
	}
}

func TestAnApplicationCannotUpgradeByItself(t *testing.T) {
	p := startProxy(t, startRawApp(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"))
	for _, fields := range []string{"", "Connection: Upgrade\r\nUpgrade: h2c\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		conn := dial(t, p.addr)
		conn.send("GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n")
		if res := conn.answer("GET"); res.StatusCode != http.StatusBadGateway {
			t.Errorf("with %q: status %d, want 502", fields, res.StatusCode)
		}
	}
}

func TestConnectIsRefused(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url)
	for _, target := range []string{"shop.example:443", "/"} {
		conn := dial(t, p.addr)
		conn.send("CONNECT " + target + " HTTP/1.1\r\nHost: shop.example:443\r\n\r\n")
		if res := conn.answer("CONNECT"); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d, want 405", target, res.StatusCode)
		}
	}
	if len(p.requests()) != 0 || len(app.take()) != 0 {
		t.Error("a request that was refused went on")
	}
}

func TestAWebSocketWithABodyIsAPlainRequest(t *testing.T) {
	upgrade := make(chan string, 1)
	p := startProxy(t, startApp(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		upgrade <- fmt.Sprintf("%q %s", r.Header["Upgrade"], body)
	}))
	conn := dial(t, p.addr)
	conn.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nbody")
	conn.answer("GET")
	if got := <-upgrade; got != "[] body" {
		t.Errorf("the application received %s", got)
	}
}

func TestTheEndOfOneSideEndsTheOther(t *testing.T) {
	t.Run("the client's", func(t *testing.T) {
		ended := make(chan error, 1)
		app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			_, _, err = conn.Read(context.Background())
			ended <- err
		})
		conn, _, err := websocket.Dial(t.Context(), startProxy(t, app).url("/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		conn.CloseNow()
		if err := <-ended; err == nil {
			t.Error("the application received a message that nobody sent")
		}
	})
	t.Run("the application's", func(t *testing.T) {
		app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
			if conn, err := websocket.Accept(w, r, nil); err == nil {
				conn.CloseNow()
			}
		})
		conn, _, err := websocket.Dial(t.Context(), startProxy(t, app).url("/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		if _, _, err := conn.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("the client received %v, want the end", err)
		}
	})
}
