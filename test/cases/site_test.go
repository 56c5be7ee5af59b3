package cases

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

	"github.com/weir-dev/weir/internal/enforcer/standalone"
	redistest "github.com/weir-dev/weir/test/redis"
)

// patience is how long a test waits for what must come. It is no measurement.
const patience = 60 * time.Second

// site is an application behind enforcers that follow one file of policies and
// count in one Redis.
type site struct {
	t         *testing.T
	redis     *redistest.Server
	app       *application
	file      string
	enforcers []*enforcer
}

// enforcer is one proxy of a site.
type enforcer struct {
	*standalone.Server
	log *logBook
}

// setup says what is special about a site. Zero values are usual.
type setup struct {
	enforcers int              // 1
	handler   http.HandlerFunc // answers 200
	backend   string           // further fields of the backend
}

// open runs a site until the test ends.
func open(t *testing.T, with setup, policies ...string) *site {
	t.Helper()
	s := &site{t: t, redis: redistest.Start(t), app: startApplication(t, with.handler), file: filepath.Join(t.TempDir(), "policies.yaml")}
	write(t, s.file, s.documents(with.backend, policies))
	for range max(1, with.enforcers) {
		s.enforcers = append(s.enforcers, s.enforce(t))
	}
	return s
}

// documents are the policies and the backend they count in. Its budget is one
// that a busy machine does not use up.
func (s *site) documents(backend string, policies []string) string {
	return strings.Join(policies, "---\n") + fmt.Sprintf(`---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: default, namespace: shop}
spec:
  mode: Standalone
  addresses: [%q]
  timeouts: {dial: 5s, decision: 5s}
  allowedNamespaces: {from: All}
%s`, s.redis.Addr(), backend)
}

// enforce runs one more enforcer until the test ends.
func (s *site) enforce(t *testing.T) *enforcer {
	t.Helper()
	e := &enforcer{log: &logBook{}}
	server, err := standalone.New(t.Context(), standalone.Config{
		Policies: []string{s.file}, Watch: true, Upstream: s.app.url,
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", DrainTimeout: patience,
		Logger: slog.New(slog.NewTextHandler(e.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Server = server
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("an enforcer ends with %v", err)
		}
	})
	return e
}

// edit replaces the policies, and returns when all enforcers have taken them.
func (s *site) edit(policies ...string) {
	s.t.Helper()
	told := func(e *enforcer) int { return strings.Count(e.log.String(), "policies are in force") }
	before := make([]int, len(s.enforcers))
	for i, e := range s.enforcers {
		before[i] = told(e)
	}
	write(s.t, s.file, s.documents("", policies))
	for i, e := range s.enforcers {
		eventually(s.t, "the edit is in force", func() bool { return told(e) > before[i] })
	}
}

// policy is a policy of the namespace shop. The spec is indented by two spaces.
func policy(name, spec string) string {
	return "apiVersion: weir.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: " + name + ", namespace: shop}\nspec:\n  selector: {}\n" + spec
}

// perAddress limits each address, in a window that does not turn.
func perAddress(limit int64) string {
	return fmt.Sprintf("  rules: [{name: r, limit: %d, window: 366d, key: [{type: ClientIP}]}]\n", limit)
}

// perUser limits each value of X-User-Id, in a window that does not turn.
func perUser(limit int64) string {
	return fmt.Sprintf("  rules: [{name: r, limit: %d, window: 366d, key: [{type: Header, name: X-User-Id}]}]\n", limit)
}

// application is what the proxies stand in front of. It remembers what it is asked.
type application struct {
	url *url.URL

	mu   sync.Mutex
	seen []*http.Request
}

func startApplication(t *testing.T, handler http.HandlerFunc) *application {
	t.Helper()
	if handler == nil {
		handler = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }
	}
	app := &application{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		app.mu.Lock()
		app.seen = append(app.seen, r)
		app.mu.Unlock()
		handler(w, r)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	app.url = address
	return app
}

// requests are those that reached the application so far.
func (a *application) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*http.Request(nil), a.seen...)
}

// logBook is a log that many goroutines write to.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the log.
func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is the log so far.
func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not so after %v: %s", patience, what)
		case <-tick.C:
		}
	}
}
