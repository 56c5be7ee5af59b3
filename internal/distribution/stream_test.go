package distribution

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is what must not be seen anywhere but in a set.
const canary = "canary-5f1c"

// manager is a Server that listens.
type manager struct {
	*Server
	t       *testing.T
	cache   *policycache.Cache
	address string
	roots   *x509.CertPool
	stop    func()
	logged  lockedBuffer

	mu     sync.Mutex
	tokens map[string]Identity
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// Authenticate knows tokens by heart.
func (m *manager) Authenticate(_ context.Context, token string) (Identity, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	who, ok := m.tokens[token]
	if !ok {
		return Identity{}, errors.New("the token is not good")
	}
	return who, nil
}

func (m *manager) know(token string, who Identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[token] = who
}

func startManager(t *testing.T) *manager {
	t.Helper()
	return startManagerWith(t, func(*ServerOptions) {})
}

// startManagerWith changes how the manager behaves before it begins.
func startManagerWith(t *testing.T, change func(*ServerOptions)) *manager {
	t.Helper()
	m := &manager{t: t, cache: policycache.New(), tokens: map[string]Identity{}}
	for _, namespace := range []string{"a", "b"} {
		m.know(namespace, Identity{Namespace: namespace, Pod: "web-1", UID: namespace, Labels: map[string]string{"app": "web"}, Expiry: time.Now().Add(time.Hour)})
	}
	certificate, roots := certify(t)
	m.roots = roots
	options := ServerOptions{Cache: m.cache, Authenticate: m, Logger: slog.New(slog.NewTextHandler(&m.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	change(&options)
	m.Server = NewServer(options)
	grpc := NewGRPC(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	m.Register(grpc)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- grpc.Serve(listener) }()
	m.stop = sync.OnceFunc(func() {
		m.Close()
		grpc.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(m.stop)
	t.Cleanup(func() {
		if strings.Contains(m.logged.String(), canary) {
			t.Errorf("the log holds a secret: %s", m.logged.String())
		}
	})
	return m
}

// certify returns a certificate of 127.0.0.1, and who believes it.
func certify(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "manager"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// enforcer is a Client that runs, and the sets that it has applied.
type enforcer struct {
	client *Client
	sets   chan *Set
	stop   func()
	logged lockedBuffer

	mu          sync.Mutex
	token       string
	refuse      error
	unreachable []policycache.LoginName
}

func (m *manager) connect(token string) *enforcer { return m.connectWith(token, nil) }

// connectWith changes how the enforcer behaves before it begins.
func (m *manager) connectWith(token string, change func(*ClientOptions, *enforcer)) *enforcer {
	e := &enforcer{sets: make(chan *Set, 100), token: token}
	options := ClientOptions{
		Manager: m.address, Build: "test", Features: policycache.Known(),
		TLS: func() (*tls.Config, error) {
			return &tls.Config{RootCAs: m.roots, MinVersion: tls.VersionTLS13}, nil
		},
		Token: func() (string, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.token, nil
		},
		Apply: func(s *Set) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.refuse != nil {
				return e.refuse
			}
			e.sets <- s
			return nil
		},
		Unreachable: func() []policycache.LoginName {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.unreachable
		},
		Logger: slog.New(slog.NewTextHandler(&e.logged, nil)),
	}
	if change != nil {
		change(&options, e)
	}
	e.client = NewClient(options)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); e.client.Run(ctx) }()
	e.stop = sync.OnceFunc(func() { cancel(); <-ended })
	m.t.Cleanup(e.stop)
	return e
}

func (e *enforcer) set(change func(*enforcer)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(e)
}

// next is the next set that is applied.
func (e *enforcer) next(t *testing.T) *Set {
	t.Helper()
	select {
	case s := <-e.sets:
		return s
	case <-time.After(time.Minute):
		t.Fatalf("no set comes; the enforcer says %s", e.logged.String())
		return nil
	}
}

func names(s *Set) []string {
	list := []string{}
	for _, n := range []string{"a/one", "a/two", "b/one", "a/big"} {
		namespace, name, _ := strings.Cut(n, "/")
		if _, ok := s.Policies[policy.Name{Namespace: namespace, Name: name}]; ok {
			list = append(list, n)
		}
	}
	return list
}

// put makes the manager know a policy for every pod of its namespace.
func (m *manager) put(namespace, name string, limit int64) {
	m.t.Helper()
	p := policycache.Policy{
		Name: policy.Name{Namespace: namespace, Name: name}, Generation: limit, Backend: policy.Name{Namespace: namespace, Name: "redis"},
		Spec: v1alpha1.RateLimitPolicySpec{Selector: &metav1.LabelSelector{}, Rules: []v1alpha1.Rule{{Name: "r", Limit: &limit, Window: "1m"}}},
	}
	if err := m.cache.SetPolicy(p); err != nil {
		m.t.Fatal(err)
	}
}

func (m *manager) putBackend(namespace, password string) {
	m.t.Helper()
	b := policycache.Backend{
		Name:    policy.Name{Namespace: namespace, Name: "redis"},
		Spec:    v1alpha1.RedisBackendSpec{Mode: v1alpha1.RedisStandalone, Addresses: []v1alpha1.RedisAddress{"redis:6379"}},
		Secrets: backends.Secrets{Login: backends.Login{Username: "weir", Password: password}},
	}
	if err := m.cache.SetBackend(b); err != nil {
		m.t.Fatal(err)
	}
}

// ready knows a policy of two namespaces each.
func (m *manager) ready() {
	for _, namespace := range []string{"a", "b"} {
		m.putBackend(namespace, canary)
		m.put(namespace, "one", 1)
	}
	m.cache.Synced()
}

// await waits for a condition.
func (m *manager) await(what string, holds func() bool) {
	m.t.Helper()
	for began := time.Now(); !holds(); <-time.After(time.Millisecond) {
		if time.Since(began) > time.Minute {
			m.t.Fatalf("not so: %s; the manager says %s", what, m.logged.String())
		}
	}
}

// confirmed is the generation of a policy that a namespace's enforcer has confirmed.
func (m *manager) confirmed(namespace, name string) int64 {
	for _, c := range m.Confirmations() {
		if c.Namespace == namespace && c.Set != nil {
			return c.Set.Policies[policy.Name{Namespace: namespace, Name: name}].Generation
		}
	}
	return 0
}

func TestEnforcersFollowTheirNamespace(t *testing.T) {
	m := startManager(t)
	m.ready()
	a, b := m.connect("a"), m.connect("b")
	for e, want := range map[*enforcer]string{a: "a/one", b: "b/one"} {
		s := e.next(t)
		if diff := cmp.Diff([]string{want}, names(s)); diff != "" || len(s.Backends) != 1 {
			t.Errorf("%d backends, -want +got:\n%s", len(s.Backends), diff)
		}
		for _, backend := range s.Backends {
			if backend.Secrets.Login.Password != canary {
				t.Error("the password is missing")
			}
		}
	}
	m.put("a", "two", 2)
	if diff := cmp.Diff([]string{"a/one", "a/two"}, names(a.next(t))); diff != "" {
		t.Errorf("after an addition, -want +got:\n%s", diff)
	}
	m.await("the addition is confirmed", func() bool { return m.confirmed("a", "two") == 2 })
	m.cache.DeletePolicy(policy.Name{Namespace: "a", Name: "one"})
	if diff := cmp.Diff([]string{"a/two"}, names(a.next(t))); diff != "" {
		t.Errorf("after a removal, -want +got:\n%s", diff)
	}
	m.cache.DeletePolicy(policy.Name{Namespace: "a", Name: "two"})
	if s := a.next(t); len(s.Policies) != 0 || len(s.Backends) != 0 {
		t.Errorf("a set of no policies holds %v", s)
	}
	if len(b.sets) > 0 {
		t.Error("another namespace hears of it")
	}
}

func TestNothingComesBeforeTheManagerKnowsAll(t *testing.T) {
	m := startManager(t)
	m.putBackend("a", canary)
	m.put("a", "one", 1)
	e := m.connect("a")
	m.await("the enforcer is connected", func() bool { return m.Connected() == 1 })
	m.put("a", "two", 1)
	if len(e.sets) > 0 {
		t.Fatal("a part of a cluster is sent")
	}
	m.cache.Synced()
	if diff := cmp.Diff([]string{"a/one", "a/two"}, names(e.next(t))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBadTokensAreRefused(t *testing.T) {
	for _, test := range []struct {
		reason, token string
		who           Identity
		want          string
	}{
		{"none", "", Identity{}, "send a service account token"},
		{"a forged one", "forged", Identity{}, "the token is not good"},
		{"an expired one", "old", Identity{Namespace: "a", Pod: "p", Expiry: time.Now().Add(-time.Second)}, "the token has expired"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			m := startManager(t)
			m.ready()
			if test.reason == "an expired one" {
				m.know(test.token, test.who)
			}
			e := m.connect(test.token)
			m.await("the enforcer is told why", func() bool { return strings.Contains(e.logged.String(), test.want) })
			if m.Connected() != 0 || len(e.sets) > 0 {
				t.Error("it is served all the same")
			}
		})
	}
}

func TestStreamEndsWithItsToken(t *testing.T) {
	m := startManager(t)
	m.ready()
	m.know("short", Identity{Namespace: "a", Pod: "web-1", UID: "a", Expiry: time.Now().Add(3 * time.Second)})
	e := m.connect("short")
	e.next(t)
	m.await("the stream ends", func() bool { return strings.Contains(e.logged.String(), "the token has expired") })
	e.set(func(e *enforcer) { e.token = "a" })
	m.await("a new token makes a new stream", func() bool { return m.Connected() == 1 })
	m.put("a", "two", 2)
	if diff := cmp.Diff([]string{"a/one", "a/two"}, names(e.next(t))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGonePodIsForgotten(t *testing.T) {
	m := startManager(t)
	m.ready()
	e := m.connect("a")
	e.next(t)
	m.await("it is confirmed", func() bool { return m.confirmed("a", "one") == 1 })
	m.mu.Lock()
	delete(m.tokens, "a")
	m.mu.Unlock()
	m.PodGone("a", "web-1", "a")
	m.await("the stream ends", func() bool { return strings.Contains(e.logged.String(), "the pod is gone") })
	if list := m.Confirmations(); len(list) != 0 {
		t.Errorf("confirmations %v", list)
	}
}

func TestLabelsChangeWhatIsSeen(t *testing.T) {
	m := startManager(t)
	m.ready()
	limit := int64(1)
	p := policycache.Policy{
		Name: policy.Name{Namespace: "a", Name: "two"}, Generation: 1, Backend: policy.Name{Namespace: "a", Name: "redis"},
		Spec: v1alpha1.RateLimitPolicySpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}},
			Rules:    []v1alpha1.Rule{{Name: "r", Limit: &limit, Window: "1m"}},
		},
	}
	if err := m.cache.SetPolicy(p); err != nil {
		t.Fatal(err)
	}
	e := m.connect("a")
	if diff := cmp.Diff([]string{"a/one"}, names(e.next(t))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	m.PodChanged("a", "web-1", map[string]string{"app": "api"})
	if diff := cmp.Diff([]string{"a/one", "a/two"}, names(e.next(t))); diff != "" {
		t.Errorf("as another, -want +got:\n%s", diff)
	}
}

func TestRefusedSetLeavesTheOneBefore(t *testing.T) {
	m := startManager(t)
	m.ready()
	e := m.connect("a")
	e.next(t)
	m.await("the first is confirmed", func() bool { return m.confirmed("a", "one") == 1 })
	e.set(func(e *enforcer) { e.refuse = errors.New("no") })
	m.put("a", "one", 2)
	m.await("the manager is told", func() bool { return strings.Contains(m.logged.String(), "can't apply a set") })
	if got := m.confirmed("a", "one"); got != 1 {
		t.Errorf("generation %d counts as confirmed", got)
	}
	e.set(func(e *enforcer) { e.refuse = nil })
	m.put("a", "one", 3)
	e.next(t)
	m.await("the next is confirmed", func() bool { return m.confirmed("a", "one") == 3 })
}

func TestAnotherReplicaSendsOnlyWhatIsNew(t *testing.T) {
	first, second := startManager(t), startManager(t)
	first.ready()
	second.ready()
	var mu sync.Mutex
	to := first
	e := first.connectWith("a", func(o *ClientOptions, _ *enforcer) {
		o.Manager = "passthrough:///" + first.address
		o.TLS = func() (*tls.Config, error) {
			mu.Lock()
			defer mu.Unlock()
			return &tls.Config{RootCAs: to.roots, MinVersion: tls.VersionTLS13}, nil
		}
	})
	e.next(t)
	mu.Lock()
	to = second
	mu.Unlock()
	// The client goes to the second one: as a Service does it, by another address
	// behind the name. The name here is an address, so the client is told.
	e.stop()
	e.client.options.Manager = second.address
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); e.client.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	second.await("the second knows what is in force", func() bool { return second.confirmed("a", "one") == 1 })
	if len(e.sets) > 0 {
		t.Error("it sends what is there")
	}
}

func TestConfirmationOutlivesItsStream(t *testing.T) {
	m := startManager(t)
	m.ready()
	var mu sync.Mutex
	now := time.Now()
	m.book.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	e := m.connect("a")
	e.next(t)
	m.await("it is confirmed", func() bool { return m.confirmed("a", "one") == 1 })
	e.stop()
	m.await("the stream has ended", func() bool { return m.Connected() == 0 })
	if m.confirmed("a", "one") != 1 {
		t.Error("it is forgotten with the stream")
	}
	mu.Lock()
	now = now.Add(outliving + time.Second)
	mu.Unlock()
	if list := m.Confirmations(); len(list) != 0 {
		t.Errorf("it lives on: %v", list)
	}
}

func TestUnreachableBackendsAreTold(t *testing.T) {
	m := startManager(t)
	m.ready()
	login := policycache.LoginName{Backend: policy.Name{Namespace: "a", Name: "redis"}}
	e := m.connectWith("a", func(_ *ClientOptions, e *enforcer) { e.unreachable = []policycache.LoginName{login} })
	e.next(t)
	m.await("it is told", func() bool {
		list := m.Confirmations()
		return len(list) == 1 && !list[0].Reaches(login)
	})
}

func TestPolicyIsKeptWhereItsNextCannotBeEnforced(t *testing.T) {
	m := startManager(t)
	m.ready()
	e := m.connect("a")
	e.next(t)
	limit := int64(7)
	p := policycache.Policy{
		Name: policy.Name{Namespace: "a", Name: "one"}, Generation: 2, Backend: policy.Name{Namespace: "a", Name: "redis"},
		Spec: v1alpha1.RateLimitPolicySpec{Selector: &metav1.LabelSelector{}, Rules: []v1alpha1.Rule{{Name: "r", Limit: &limit, Window: "1m", Key: []v1alpha1.KeyPart{{Type: "Moon"}}}}},
	}
	if err := m.cache.SetPolicy(p); err != nil {
		t.Fatal(err)
	}
	kept := e.next(t).Policies[p.Name]
	if kept.Generation != 1 {
		t.Errorf("generation %d is in force, want the one that the enforcer understands", kept.Generation)
	}
	m.await("the manager knows why", func() bool {
		list := m.Confirmations()
		return len(list) == 1 && list[0].Set != nil && len(list[0].Set.Withheld[p.Name]) == 1
	})
	m.cache.DeletePolicy(p.Name)
	if s := e.next(t); len(s.Policies) != 0 {
		t.Error("it stays when it is deleted")
	}
}

func TestLargeSetArrives(t *testing.T) {
	m := startManager(t)
	m.putBackend("a", canary)
	limit := int64(1)
	const objects, size = 10, 700 << 10
	for i := range objects {
		p := policycache.Policy{
			Name: policy.Name{Namespace: "a", Name: fmt.Sprint("p", i)}, Generation: 1, Backend: policy.Name{Namespace: "a", Name: "redis"},
			Spec: v1alpha1.RateLimitPolicySpec{Selector: &metav1.LabelSelector{}, Domain: strings.Repeat("x", size), Rules: []v1alpha1.Rule{{Name: "r", Limit: &limit, Window: "1m"}}},
		}
		if err := m.cache.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
	}
	m.cache.Synced()
	s := m.connect("a").next(t)
	total := 0
	for _, p := range s.Policies {
		total += len(p.Spec)
	}
	if len(s.Policies) != objects || total < objects*size {
		t.Errorf("%d policies of %d bytes arrive", len(s.Policies), total)
	}
}

func TestEnforcerThatIsSlowDelaysNobody(t *testing.T) {
	m := startManager(t)
	m.ready()
	blocked := make(chan struct{})
	slow := m.connectWith("b", func(o *ClientOptions, _ *enforcer) {
		o.Apply = func(*Set) error { <-blocked; return nil }
	})
	defer func() { close(blocked); slow.stop() }()
	fast := m.connect("a")
	fast.next(t)
	for limit := range int64(20) {
		m.put("a", "one", limit+2)
		m.put("b", "one", limit+2)
		fast.next(t)
	}
}
