package manager

import (
	"context"
	"encoding/pem"
	"errors"
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/internal/enforcer/sidecar"
	"github.com/weir-dev/weir/internal/policycache"
	"github.com/weir-dev/weir/internal/tokens"
	"github.com/weir-dev/weir/test/cluster"
	redistest "github.com/weir-dev/weir/test/redis"
)

// canary is a password that must not be seen.
const canary = "canary-81d0"

// bed is a cluster with a manager.
type bed struct {
	*cluster.Cluster
	t       *testing.T
	dir     string
	manager *Manager
	logged  lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{Cluster: cluster.Start(t), t: t, dir: t.TempDir()}
	writeCertificate(t, b.dir)
	b.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}})
	b.Apply("rbac/manager.yaml")
	t.Cleanup(func() {
		for _, bad := range []string{canary, "forbidden"} {
			if strings.Contains(b.logged.String(), bad) {
				t.Errorf("the log says %s", bad)
			}
		}
	})
	return b
}

// writeCertificate writes what manager and sidecars need for TLS on loopback.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	certificates := redistest.NewCertificates(t)
	certificate, key := certificates.Server()
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificates.CA} {
		if block, _ := pem.Decode(content); block == nil {
			t.Fatalf("%s is no PEM", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a manager until the test ends, or until it is stopped. It may do what the
// manager's role says and nothing else.
func (b *bed) run() (stop func()) {
	b.t.Helper()
	m, err := New(b.t.Context(), Config{
		Cluster: b.As("weir-system", "weir-manager"), LeaderElection: true, Namespace: "weir-system", StreamListen: "127.0.0.1:0", HealthListen: "0", MetricsListen: "0",
		CertFile: filepath.Join(b.dir, "tls.crt"), KeyFile: filepath.Join(b.dir, "tls.key"),
		Logger: slog.New(slog.NewTextHandler(&b.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.manager = m
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("the manager ends with %v", err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

// sidecar runs an enforcer as a pod's, with the pod's own token.
func (b *bed) sidecar(pod *corev1.Pod) *sidecar.Server {
	b.t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.t.Cleanup(app.Close)
	upstream, err := url.Parse(app.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	token := filepath.Join(b.dir, pod.Namespace+"-"+pod.Name)
	if err := os.WriteFile(token, []byte(b.Token(pod, tokens.Audience, time.Hour)), 0o600); err != nil {
		b.t.Fatal(err)
	}
	s, err := sidecar.New(b.t.Context(), sidecar.Config{
		Manager: b.manager.StreamAddr(), TokenFile: token, CAFile: filepath.Join(b.dir, "ca.crt"), Patience: time.Hour, Build: "test",
		Upstream: upstream, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", DrainTimeout: time.Second,
		Logger: slog.New(slog.NewTextHandler(&b.logged, nil)),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.t.Cleanup(func() { cancel(); <-ended })
	return s
}

// object makes an object of YAML's JSON form.
func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "weir.dev/v1alpha1", "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func rules(limit int64) []any {
	return []any{map[string]any{"name": "all", "limit": limit, "window": "366d"}}
}

// condition reads a condition as status/reason, and the status's other fields.
func (b *bed) condition(kind, namespace, name, condition string) (string, map[string]any) {
	u := object(kind, namespace, name, nil)
	if err := b.Client.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, u); err != nil {
		return err.Error(), nil
	}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	if observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); observed != u.GetGeneration() {
		return fmt.Sprintf("of generation %d", observed), status
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m := c.(map[string]any); m["type"] == condition {
			return fmt.Sprint(m["status"], "/", m["reason"]), status
		}
	}
	return "none", status
}

func (b *bed) awaitCondition(kind, namespace, name, condition, want string) map[string]any {
	b.t.Helper()
	var status map[string]any
	b.Await(fmt.Sprintf("%s %s is %s", name, condition, want), func() error {
		var got string
		if got, status = b.condition(kind, namespace, name, condition); got != want {
			return errors.New(got)
		}
		return nil
	})
	return status
}

func get(t *testing.T, address string) int {
	t.Helper()
	response, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// TestPolicyReachesItsEnforcers is the whole way from an applied policy to a denied
// request, on a real API server and a real Redis.
func TestPolicyReachesItsEnforcers(t *testing.T) {
	b := newBed(t)
	redis := redistest.Start(t, redistest.User("weir", canary, "~rl:*", "+@all")...)
	b.Namespace("shop")
	b.Namespace("other")
	stop := b.run()
	spec := func(limit int64) map[string]any {
		return map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "rules": rules(limit)}
	}
	policy := object("RateLimitPolicy", "shop", "storefront", spec(2))
	b.Create(policy)
	b.awaitCondition("RateLimitPolicy", "shop", "storefront", "Ready", "False/BackendNotFound")

	b.Create(object("RedisBackend", "shop", "default", map[string]any{
		"mode": "Standalone", "addresses": []any{redis.Addr()}, "credentialsSecretRef": map[string]any{"name": "redis"}, "timeouts": map[string]any{"decision": "1s"},
	}))
	b.awaitCondition("RedisBackend", "shop", "default", "Ready", "False/SecretNotFound")
	b.awaitCondition("RateLimitPolicy", "shop", "storefront", "Ready", "False/SecretNotFound")
	b.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "redis"}, StringData: map[string]string{"username": "weir", "password": canary}})
	backend := b.awaitCondition("RedisBackend", "shop", "default", "Ready", "True/Connected")
	if backend["version"] == nil || backend["role"] != "primary" {
		t.Errorf("the backend's status: %v", backend)
	}
	status := b.awaitCondition("RateLimitPolicy", "shop", "storefront", "Ready", "True/NoMatchingWorkload")
	if status["limits"] != "2/366d" || status["key"] != "everyone" || status["mode"] != "Enforce" || status["redis"] != "shop/default" || status["target"] != "app=web" {
		t.Errorf("the policy's status: %v", status)
	}

	pod := b.Pod("shop", "web-1", map[string]string{"app": "web"}, "app", controllers.ContainerName)
	b.awaitCondition("RateLimitPolicy", "shop", "storefront", "Ready", "False/Pending")
	s := b.sidecar(pod)
	status = b.awaitCondition("RateLimitPolicy", "shop", "storefront", "Ready", "True/Enforced")
	if summary, _, _ := unstructured.NestedString(status, "enforcers", "summary"); summary != "1/1" {
		t.Errorf("enforcers %s", summary)
	}
	for i, want := range []int{200, 200, 429} {
		if code := get(t, s.Addr()); code != want {
			t.Errorf("request %d gets %d, want %d", i+1, code, want)
		}
	}

	stranger := b.sidecar(b.Pod("other", "web-1", map[string]string{"app": "web"}, controllers.ContainerName))
	b.Await("the other namespace's sidecar is connected", func() error {
		if n := b.manager.stream.Connected(); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	for range 4 {
		if code := get(t, stranger.Addr()); code != http.StatusOK {
			t.Errorf("another namespace's request gets %d", code)
		}
	}

	b.edit(policy, spec(3))
	b.awaitCondition("RateLimitPolicy", "shop", "storefront", "Enforced", "True/Enforced")
	for i, want := range []int{200, 429} {
		if code := get(t, s.Addr()); code != want {
			t.Errorf("request %d after the edit gets %d, want %d", i+1, code, want)
		}
	}
	b.Pod("shop", "web-2", map[string]string{"app": "web"}, "app")
	b.awaitCondition("RateLimitPolicy", "shop", "storefront", "Ready", "False/NotInjected")

	b.mustNotShow(canary)

	stop()
	if code := get(t, s.Addr()); code != http.StatusTooManyRequests {
		t.Errorf("without a manager a request gets %d", code)
	}
}

// mustNotShow looks for a secret in all that is not a Secret.
func (b *bed) mustNotShow(secret string) {
	b.t.Helper()
	for kind, version := range map[string]string{"RateLimitPolicy": "weir.dev/v1alpha1", "RedisBackend": "weir.dev/v1alpha1", "Event": "events.k8s.io/v1", "Pod": "v1"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(kind + "List")
		if err := b.Client.List(b.t.Context(), list); err != nil {
			b.t.Fatal(err)
		}
		if len(list.Items) == 0 {
			b.t.Errorf("there is no %s", kind)
		}
		text, err := list.MarshalJSON()
		if err != nil || strings.Contains(string(text), secret) {
			b.t.Errorf("%s shows a secret (%v)", kind, err)
		}
	}
}

// TestBadObjectStopsNothingElse stores a policy as it was possible before there was
// validation.
func TestBadObjectStopsNothingElse(t *testing.T) {
	b := newBed(t)
	redis := redistest.Start(t)
	b.Namespace("shop")
	b.Create(object("RedisBackend", "shop", "default", map[string]any{"mode": "Standalone", "addresses": []any{redis.Addr()}, "timeouts": map[string]any{"decision": "1s"}}))
	b.withoutValidation(func() {
		b.Create(
			object("RateLimitPolicy", "shop", "number", map[string]any{"selector": map[string]any{}, "rules": []any{map[string]any{"name": "r", "limit": int64(1), "window": int64(60)}}}),
			object("RateLimitPolicy", "shop", "text", map[string]any{"selector": map[string]any{}, "rules": "none"}),
		)
	})
	b.run()
	b.Create(object("RateLimitPolicy", "shop", "good", map[string]any{"selector": map[string]any{}, "rules": rules(1)}))
	s := b.sidecar(b.Pod("shop", "web-1", nil, controllers.ContainerName))
	b.awaitCondition("RateLimitPolicy", "shop", "good", "Ready", "True/Enforced")
	for i, want := range []int{200, 429} {
		if code := get(t, s.Addr()); code != want {
			t.Errorf("request %d gets %d, want %d", i+1, code, want)
		}
	}
	good := object("RateLimitPolicy", "shop", "good", nil)
	if err := b.Client.Delete(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	b.Await("nothing is left of a deleted policy", func() error {
		if code := get(t, s.Addr()); code != http.StatusOK {
			return fmt.Errorf("%d", code)
		}
		return nil
	})
}

// withoutValidation has the API server take everything meanwhile.
func (b *bed) withoutValidation(do func()) {
	b.t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	name := types.NamespacedName{Name: "ratelimitpolicies.weir.dev"}
	change := func(schema func(*unstructured.Unstructured) any) {
		b.t.Helper()
		b.Await("the definition is written", func() error {
			if err := b.Client.Get(b.t.Context(), name, crd); err != nil {
				return err
			}
			versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
			versions[0].(map[string]any)["schema"] = schema(crd)
			_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
			return b.Client.Update(b.t.Context(), crd)
		})
	}
	var strict any
	change(func(crd *unstructured.Unstructured) any {
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		strict = versions[0].(map[string]any)["schema"]
		return map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	})
	b.Await("everything is taken", func() error {
		probe := object("RateLimitPolicy", "shop", "probe", map[string]any{"rules": "none"})
		return b.Client.Create(b.t.Context(), probe)
	})
	do()
	change(func(*unstructured.Unstructured) any { return strict })
}

// edit changes a spec as kubectl does.
func (b *bed) edit(u *unstructured.Unstructured, spec map[string]any) {
	b.t.Helper()
	now := object(u.GetKind(), u.GetNamespace(), u.GetName(), nil)
	if err := b.Client.Get(b.t.Context(), client.ObjectKeyFromObject(u), now); err != nil {
		b.t.Fatal(err)
	}
	stored := now.DeepCopy()
	now.Object["spec"] = spec
	if err := b.Client.Patch(b.t.Context(), now, client.MergeFrom(stored)); err != nil {
		b.t.Fatal(err)
	}
}

// TestIdleClusterSeesNoWrites looks at versions of objects that nothing changes.
func TestIdleClusterSeesNoWrites(t *testing.T) {
	b := newBed(t)
	redis := redistest.Start(t)
	b.Namespace("shop")
	b.Create(object("RedisBackend", "shop", "default", map[string]any{"mode": "Standalone", "addresses": []any{redis.Addr()}}))
	const policies = 20
	for i := range policies {
		b.Create(object("RateLimitPolicy", "shop", fmt.Sprint("p", i), map[string]any{"selector": map[string]any{}, "rules": rules(5)}))
	}
	stop := b.run()
	settled := func() {
		b.awaitCondition("RedisBackend", "shop", "default", "Ready", "True/Connected")
		for i := range policies {
			b.awaitCondition("RateLimitPolicy", "shop", fmt.Sprint("p", i), "Ready", "True/NoMatchingWorkload")
		}
	}
	settled()
	before := b.versions()
	stop()
	b.run()
	b.Await("the second manager has looked at all", func() error {
		if _, ok := b.manager.cache.View(policycache.Audience{Namespace: "shop"}); !ok {
			return errors.New("not yet")
		}
		return nil
	})
	// A pod that is never ready has every policy looked at again, and changes nothing.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bystander"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "none"}}}}
	b.Create(pod)
	if err := b.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	settled()
	b.Create(object("RateLimitPolicy", "shop", "last", map[string]any{"selector": map[string]any{}, "rules": rules(5)}))
	b.awaitCondition("RateLimitPolicy", "shop", "last", "Ready", "True/NoMatchingWorkload")
	for name, version := range b.versions() {
		if was, ok := before[name]; ok && was != version {
			t.Errorf("%s was written though nothing changed", name)
		}
	}
}

// versions are the resource versions of Weir's objects, by kind and name.
func (b *bed) versions() map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for _, kind := range []string{"RateLimitPolicy", "RedisBackend"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("weir.dev/v1alpha1")
		list.SetKind(kind + "List")
		if err := b.Client.List(b.t.Context(), list); err != nil {
			b.t.Fatal(err)
		}
		for i := range list.Items {
			all[kind+" "+list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
		}
	}
	return all
}
