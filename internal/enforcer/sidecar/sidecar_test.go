package sidecar

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/distribution"
	"github.com/weir-dev/weir/internal/enforcer/enforcement"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
	redistest "github.com/weir-dev/weir/test/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anybody takes every token for the pod's.
type anybody struct{}

func (anybody) Authenticate(context.Context, string) (distribution.Identity, error) {
	return distribution.Identity{Namespace: "shop", Pod: "web-1", UID: "1", Expiry: time.Now().Add(time.Hour)}, nil
}

// startManager returns a manager's cache, the flags that lead to it, and its end.
func startManager(t *testing.T, dir string) (cache *policycache.Cache, address, ca string, server *distribution.Server, stop func()) {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	ca = filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cache = policycache.New()
	server = distribution.NewServer(distribution.ServerOptions{Cache: cache, Authenticate: anybody{}, Logger: slog.New(slog.DiscardHandler)})
	grpc := distribution.NewGRPC(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS13})
	server.Register(grpc)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = grpc.Serve(listener) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			server.Close()
			grpc.Stop()
			<-ended
		}
	}
	t.Cleanup(stop)
	return cache, listener.Addr().String(), ca, server, stop
}

func put(t *testing.T, cache *policycache.Cache, redis string, limit int64) {
	t.Helper()
	name := policy.Name{Namespace: "shop", Name: "redis"}
	err := cache.SetBackend(policycache.Backend{Name: name, Spec: v1alpha1.RedisBackendSpec{
		Mode: v1alpha1.RedisStandalone, Addresses: []v1alpha1.RedisAddress{v1alpha1.RedisAddress(redis)},
		Timeouts: &v1alpha1.RedisTimeouts{Decision: "1s"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = cache.SetPolicy(policycache.Policy{Name: policy.Name{Namespace: "shop", Name: "p"}, Generation: limit, Backend: name, Spec: v1alpha1.RateLimitPolicySpec{
		Selector: &metav1.LabelSelector{}, Rules: []v1alpha1.Rule{{Name: "all", Limit: &limit, Window: "366d"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSidecarEnforcesWhatTheManagerSays(t *testing.T) {
	dir := t.TempDir()
	cache, address, ca, manager, stop := startManager(t, dir)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	upstream, err := url.Parse(app.URL)
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), Config{
		Manager: address, TokenFile: token, CAFile: ca, Patience: time.Hour, Build: "test", Upstream: upstream,
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", DrainTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})

	if code := get(t, s.Addr(), "/"); code != http.StatusOK {
		t.Errorf("without policies a request gets %d", code)
	}
	if code := get(t, s.AdminAddr(), "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("without policies readiness is %d", code)
	}
	redis := redistest.Start(t)
	put(t, cache, redis.Addr(), 2)
	cache.Synced()
	await(t, "the sidecar is ready", func() bool { return get(t, s.AdminAddr(), "/readyz") == http.StatusOK })
	for i, want := range []int{200, 200, 429} {
		if code := get(t, s.Addr(), "/"); code != want {
			t.Errorf("request %d gets %d, want %d", i+1, code, want)
		}
	}
	put(t, cache, redis.Addr(), 3)
	await(t, "the edit is confirmed", func() bool {
		list := manager.Confirmations()
		return len(list) == 1 && list[0].Set != nil && list[0].Set.Policies[policy.Name{Namespace: "shop", Name: "p"}].Generation == 3
	})
	for i, want := range []int{200, 429} {
		if code := get(t, s.Addr(), "/"); code != want {
			t.Errorf("request %d after the edit gets %d, want %d", i+1, code, want)
		}
	}
	stop()
	if code := get(t, s.Addr(), "/"); code != http.StatusTooManyRequests {
		t.Errorf("without a manager a request gets %d", code)
	}
	if code := get(t, s.AdminAddr(), "/readyz"); code != http.StatusOK {
		t.Errorf("without a manager readiness is %d", code)
	}
}

func get(t *testing.T, address, path string) int {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); <-time.After(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("not so: %s", what)
		}
	}
}

func TestSetThatCannotBeEnforcedChangesNothing(t *testing.T) {
	e := enforcement.New(enforcement.Options{Limiter: limiter.Options{}, Observe: func(policy.Name) redisstore.Observer { return nil }})
	defer e.Close()
	f := newFeed(e)
	login := policycache.LoginName{Backend: policy.Name{Namespace: "shop", Name: "redis"}}
	set := func(spec, backend string) *distribution.Set {
		name := policy.Name{Namespace: "shop", Name: "p"}
		return &distribution.Set{
			Policies: map[policy.Name]distribution.Policy{name: {Name: name, Spec: []byte(spec), Login: login}},
			Backends: map[policycache.LoginName]distribution.Backend{login: {Login: login, Spec: []byte(backend)}},
		}
	}
	const good, redis = `{"selector": {}, "rules": [{"name": "r", "limit": 1, "window": "1m"}]}`, `{"mode": "Standalone", "addresses": ["127.0.0.1:1"]}`
	if err := f.apply(set(good, redis)); err != nil {
		t.Fatal(err)
	}
	for reason, bad := range map[string]*distribution.Set{
		"a condition that is not known": set(strings.Replace(good, `"limit"`, `"match": {"moon": "full"}, "limit"`, 1), redis),
		"a window that is none":         set(strings.Replace(good, "1m", "1 moon", 1), redis),
		"no JSON":                       set("{", redis),
		"a backend that is not known":   set(good, `{"mode": "Standalone", "addresses": ["127.0.0.1:1"], "moon": 1}`),
	} {
		if err := f.apply(bad); err == nil {
			t.Errorf("%s is taken", reason)
		}
		if e.Policies() != 1 {
			t.Errorf("after %s there are %d policies", reason, e.Policies())
		}
	}
	if away := f.away(); len(away) != 1 || away[0] != login {
		t.Errorf("unreachable: %s", fmt.Sprint(away))
	}
}
