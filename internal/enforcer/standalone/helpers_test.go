package standalone

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBook is a log that many goroutines write to.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// running is a Server under test.
type running struct {
	*Server
	log    *logBook
	client *http.Client
	stop   func() error
}

// start runs a Server in front of an application until the test ends.
func start(t *testing.T, config Config) *running {
	t.Helper()
	r, err := tryStart(t, config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryStart(t *testing.T, config Config) (*running, error) {
	t.Helper()
	r := &running{log: &logBook{}, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	config.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	config.Listen, config.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	config.Watch, config.DrainTimeout = true, 20*time.Second
	if config.Upstream == nil {
		config.Upstream = application(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	}
	server, err := New(t.Context(), config)
	if err != nil {
		return nil, err
	}
	r.Server = server
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("run ends with %v", err)
		}
	})
	return r, nil
}

// application starts what the proxy stands in front of.
func application(t *testing.T, handler http.HandlerFunc) *url.URL {
	t.Helper()
	app := httptest.NewServer(handler)
	t.Cleanup(app.Close)
	u, err := url.Parse(app.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// get sends one request through the proxy.
func (r *running) get(t *testing.T, path string, fields ...string) *http.Response {
	t.Helper()
	return r.ask(t, "http://"+r.Addr()+path, fields...)
}

// page reads an admin page.
func (r *running) page(t *testing.T, path string) string {
	t.Helper()
	return body(t, r.ask(t, "http://"+r.AdminAddr()+path))
}

func (r *running) ask(t *testing.T, address string, fields ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		request.Header.Add(fields[i], fields[i+1])
	}
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// passed sends n requests of one user and tells how many are let through.
func (r *running) passed(t *testing.T, n int, user string) (passed int) {
	t.Helper()
	for range n {
		switch response := r.get(t, "/", "X-User-Id", user); response.StatusCode {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("answered %s", response.Status)
		}
	}
	return passed
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not so after 30 s: %s", what)
		case <-tick.C:
		}
	}
}

// edit writes a file and waits until it was taken over, or refused.
func (r *running) edit(t *testing.T, path, content string) {
	t.Helper()
	told := func() int { return strings.Count(r.log.String(), "policies are ") }
	before := told()
	write(t, path, content)
	eventually(t, "the edit is noticed", func() bool { return told() > before })
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// policyText is a policy whose window does not turn during a test.
func policyText(name string, limit int, spec string) string {
	return fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: %s, namespace: shop}
spec:
  selector: {}
%s  rules:
  - name: per-user
    limit: %d
    window: 366d
    key: [{type: Header, name: X-User-Id}]
`, name, spec, limit)
}

// backendText is a backend with a budget that a busy machine does not use up.
func backendText(name, address, spec string) string {
	return fmt.Sprintf(`---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: %s, namespace: shop}
spec:
  mode: Standalone
  addresses: ["%s"]
  timeouts: {dial: 5s, decision: 5s}
%s`, name, address, spec)
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
