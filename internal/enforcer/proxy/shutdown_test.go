package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestShutdownLetsRequestsEnd(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	p := startProxy(t, startApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		entered <- struct{}{}
		<-finish
		_, _ = w.Write([]byte("whole"))
	}))
	type result struct{ body, err string }
	results := make(chan result)
	for _, http2 := range []bool{false, true} {
		client := newClient(t, http2)
		go func() {
			res, err := client.Get(p.url("/"))
			if err != nil {
				results <- result{err: err.Error()}
				return
			}
			defer res.Body.Close()
			lines := bufio.NewScanner(res.Body)
			lines.Scan()
			results <- result{body: lines.Text()}
		}()
		<-entered
	}
	down := make(chan error)
	go func() { down <- p.server.Shutdown(context.Background()) }()
	waitRefused(t, p.addr)
	close(finish)
	for range 2 {
		if got := <-results; got.body != "whole" {
			t.Errorf("a request under way received %+v", got)
		}
	}
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// waitRefused waits until nobody listens at addr.
func waitRefused(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("the proxy still listens")
}

func TestShutdownCutsWhatDoesNotEnd(t *testing.T) {
	entered := make(chan struct{})
	app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			if conn, err := websocket.Accept(w, r, nil); err == nil {
				_, _, _ = conn.Read(context.Background())
				conn.CloseNow()
			}
			return
		}
		close(entered)
		<-r.Context().Done()
	})
	p := startProxy(t, app)
	socket, _, err := websocket.Dial(t.Context(), p.url("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	hanging := make(chan error)
	client := newClient(t, false)
	go func() {
		res, err := client.Get(p.url("/"))
		if err == nil {
			res.Body.Close()
		}
		hanging <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v, want that its time was over", err)
	}
	if err := <-hanging; err == nil {
		t.Error("the hanging request was answered")
	}
	if _, _, err := socket.Read(t.Context()); err == nil {
		t.Error("the WebSocket goes on")
	}
}

func TestShutdownWaitsForWebSockets(t *testing.T) {
	p := startProxy(t, echoSocket(t))
	conn, _, err := websocket.Dial(t.Context(), p.url("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	down := make(chan error)
	go func() { down <- p.server.Shutdown(context.Background()) }()
	waitRefused(t, p.addr)
	if err := conn.Write(t.Context(), websocket.MessageText, []byte("still here")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.Read(t.Context()); err != nil || string(got) != "still here" {
		t.Errorf("received %q, %v", got, err)
	}
	if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}
