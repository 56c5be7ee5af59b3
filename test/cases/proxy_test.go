package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// echoSocket sends each message of a WebSocket back.
func echoSocket(w http.ResponseWriter, r *http.Request) {
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
}

func TestAWebSocketIsOneRequestAndOutlivesAnEdit(t *testing.T) {
	t.Parallel()
	trusting := "  clientAddress: {trustedProxies: [127.0.0.0/8]}\n"
	s := open(t, setup{handler: echoSocket}, policy("p", trusting+perAddress(2)))
	dial := func() (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(t.Context(), "ws://"+s.enforcers[0].Addr(), &websocket.DialOptions{HTTPHeader: http.Header{"X-Forwarded-For": {"203.0.113.9"}}})
	}
	conn, response, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if got := response.Header.Get("X-RateLimit-Remaining"); response.StatusCode != http.StatusSwitchingProtocols || got != "1" {
		t.Errorf("answered %d with %q left", response.StatusCode, got)
	}
	if got := s.app.requests()[0].Header.Get("X-Forwarded-For"); got != "203.0.113.9, 127.0.0.1" {
		t.Errorf("the application is told %q", got)
	}
	echo := func() {
		t.Helper()
		if err := conn.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.Read(t.Context()); err != nil || string(got) != "hello" {
			t.Fatalf("received %q, %v", got, err)
		}
	}
	echo()
	s.edit(policy("p", trusting+perAddress(0)))
	echo()
	if _, response, err := dial(); err == nil || response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after the edit: %v, %v", response, err)
	}
	echo()
	s.wantAttempts(map[string]int{"203.0.113.9": 2})
}

func TestHeadersNamedByConnectionStillCount(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"next to close":            {"Connection: close, X-User-Id", "X-User-Id: bob"},
		"on the second of two":     {"Connection:", "Connection: X-User-Id, close", "X-User-Id: bob"},
		"the forwarded address":    {"Connection: X-Forwarded-For, close", "X-Forwarded-For: 203.0.113.9", "X-User-Id: bob"},
		"in letters of other case": {"connection: x-USER-id, close", "X-User-Id: bob"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, setup{}, policy("p", "  clientAddress: {trustedProxies: [127.0.0.0/8]}\n"+perUser(2)))
			for range 3 {
				s.raw("GET / HTTP/1.1\r\nHost: a\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n")
			}
			s.wantAttempts(map[string]int{"bob": 3})
			seen := s.app.requests()
			if len(seen) != 2 {
				t.Fatalf("%d requests reach the application, want 2", len(seen))
			}
			forwarded, user := "127.0.0.1", ""
			if strings.Contains(name, "forwarded") {
				forwarded, user = "203.0.113.9, 127.0.0.1", "bob"
			}
			h := seen[0].Header
			if h.Get("X-Forwarded-For") != forwarded || h.Get("X-User-Id") != user || len(h["Connection"]) != 0 {
				t.Errorf("the application receives %v", h)
			}
		})
	}
}

// startHealth runs the standard health service behind a site's proxy.
func startHealth(t *testing.T, policies string) (*site, healthpb.HealthClient) {
	t.Helper()
	s := open(t, setup{}, policies)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	s.app.url = &url.URL{Scheme: "http", Host: listener.Addr().String()}
	s.enforcers = []*enforcer{s.enforce(t)}
	conn, err := grpc.NewClient("passthrough:///"+s.enforcers[0].Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return s, healthpb.NewHealthClient(conn)
}

func TestGRPCCallsAreCountedOnceEach(t *testing.T) {
	t.Parallel()
	s, client := startHealth(t, policy("p", perUser(500)))
	as := func(user string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "x-user-id", user)
	}

	var calls errgroup.Group
	results := make([]codes.Code, 700)
	for i := range results {
		calls.Go(func() error {
			_, err := client.Check(as("many"), &healthpb.HealthCheckRequest{})
			results[i] = status.Code(err)
			return nil
		})
	}
	_ = calls.Wait()
	byCode := map[codes.Code]int{}
	for _, code := range results {
		byCode[code]++
	}
	if diff := cmp.Diff(map[codes.Code]int{codes.OK: 500, codes.ResourceExhausted: 200}, byCode); diff != "" {
		t.Errorf("calls at the same time: %s", diff)
	}

	_, err := client.Check(as("one"), &healthpb.HealthCheckRequest{Service: "nobody"})
	if status.Code(err) != codes.NotFound || status.Convert(err).Message() != "unknown service" {
		t.Errorf("the application's error becomes %v", err)
	}
	stream, err := client.Watch(as("stream"), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the stream brings %v, %v", got, err)
	}
	s.wantAttempts(map[string]int{"many": 700, "one": 1, "stream": 1})
}

// TestRequestsOfUnclearLength sends what parsers read in several ways. The second
// request of each would be hidden in the first by a proxy and an application that
// disagree.
func TestRequestsOfUnclearLength(t *testing.T) {
	t.Parallel()
	const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, c := range map[string]struct {
		text   string
		status int
		seen   int
	}{
		"a length and chunks":           {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, 1},
		"two lengths":                   {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 35\r\n\r\n" + hidden, 400, 0},
		"chunked behind a CR":           {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: \rchunked\r\n\r\n0\r\n\r\n" + hidden, 400, 0},
		"a bare LF behind a chunk size": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n" + hidden, 400, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reading := func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					w.WriteHeader(http.StatusBadRequest)
				}
			}
			s := open(t, setup{handler: reading}, policy("p", perAddress(100)))
			answers := s.raw(c.text)
			if len(answers) != 1 || answers[0].status != c.status {
				t.Errorf("answered %v, want %d once", answers, c.status)
			}
			seen := s.app.requests()
			if len(seen) > c.seen {
				t.Errorf("%d requests reach the application, want %d", len(seen), c.seen)
			}
			for _, r := range seen {
				if r.URL.Path != "/" {
					t.Errorf("the application is asked for %s", r.URL.Path)
				}
			}
			want := map[string]int{}
			if c.seen > 0 {
				want["127.0.0.1"] = c.seen
			}
			s.wantAttempts(want)
		})
	}
}

func TestProbesAreNotCounted(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", "  exempt: [{name: probes, match: {paths: [{type: Exact, value: /healthz}]}}]\n"+perAddress(10)))
	caller := s.from("127.0.0.2")
	if diff := cmp.Diff(times(30, 200), caller.statuses(30, "/healthz")); diff != "" {
		t.Errorf("before the limit is reached: %s", diff)
	}
	if n := caller.passed(15, "/"); n != 10 {
		t.Errorf("%d of 15 requests pass, want 10", n)
	}
	if diff := cmp.Diff(times(30, 200), caller.statuses(30, "/healthz")); diff != "" {
		t.Errorf("after it: %s", diff)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := s.enforcers[0].page(t, path); got != "ok\n" {
			t.Errorf("the enforcer's own %s says %q", path, got)
		}
	}
	s.wantAttempts(map[string]int{"127.0.0.2": 15})
}

// TestEventsArriveOneByOne sends each event only when the one before has arrived.
func TestEventsArriveOneByOne(t *testing.T) {
	t.Parallel()
	next := make(chan int)
	s := open(t, setup{handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for event := range next {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", event)
			_ = http.NewResponseController(w).Flush()
		}
	}}, policy("p", perAddress(1)))
	response := make(chan *http.Response, 1)
	caller := s.from("127.0.0.2")
	go func() {
		r, err := caller.http.Get(caller.base)
		if err != nil {
			t.Error(err)
		}
		response <- r
	}()
	next <- 0
	stream := <-response
	if stream == nil {
		t.FailNow()
	}
	defer stream.Body.Close()
	for i := range 10 {
		want := fmt.Sprintf("data: %d\n\n", i)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(stream.Body, got); err != nil || string(got) != want {
			t.Fatalf("received %q, %v; want %q", got, err, want)
		}
		if i < 9 {
			next <- i + 1
		}
	}
	close(next)
	if _, err := stream.Body.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
	s.wantAttempts(map[string]int{"127.0.0.2": 1})
}
