// Package cluster gives tests a real Kubernetes API server: kube-apiserver and etcd,
// without nodes. A test plays the kubelet where it needs one.
//
// make kubernetes builds what it runs, make test says where that is.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Cluster is a running API server with Weir's resources installed.
type Cluster struct {
	// Config is an administrator's.
	Config *rest.Config
	// Client reads and writes as an administrator, without a cache.
	Client client.Client
	// Set is the same for what Client can't do.
	Set kubernetes.Interface

	t           testing.TB
	environment *envtest.Environment
}

// Start runs an API server until the test ends.
func Start(t testing.TB) *Cluster {
	t.Helper()
	root := sourceRoot()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(root, "bin", "kubernetes")
	}
	if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); err != nil {
		t.Fatalf("there is no kube-apiserver in %s: run make kubernetes, or set KUBEBUILDER_ASSETS", assets)
	}
	c := &Cluster{t: t, environment: &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{filepath.Join(root, "config", "crd")},
		ErrorIfCRDPathMissing: true,
		// A busy machine is no reason to fail.
		ControlPlaneStartTimeout: 3 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}}
	var err error
	if c.Config, err = c.environment.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	c.Config.QPS, c.Config.Burst = -1, -1
	if c.Client, err = client.New(c.Config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	if c.Set, err = kubernetes.NewForConfig(c.Config); err != nil {
		t.Fatal(err)
	}
	return c
}

// sourceRoot is the tree that this file belongs to.
func sourceRoot() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Create creates objects that must be taken.
func (c *Cluster) Create(objects ...client.Object) {
	c.t.Helper()
	for _, o := range objects {
		if err := c.Client.Create(context.Background(), o); err != nil {
			c.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// Namespace creates a namespace and its service account.
func (c *Cluster) Namespace(name string) {
	c.t.Helper()
	c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	c.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
}

// Pod creates a pod with containers of these names, and says that it is ready, as
// the kubelet of a node would.
func (c *Cluster) Pod(namespace, name string, labels map[string]string, containers ...string) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{ServiceAccountName: "default"},
	}
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: "none"})
	}
	c.Create(pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := c.Client.Status().Update(context.Background(), pod); err != nil {
		c.t.Fatal(err)
	}
	return pod
}

// Token returns a service account token that is bound to a pod.
func (c *Cluster) Token(pod *corev1.Pod, audience string, lasting time.Duration) string {
	c.t.Helper()
	seconds := int64(lasting / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	got, err := c.Set.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(context.Background(), "default", request, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return got.Status.Token
}

// Apply creates every object of a file of the project's config folder.
func (c *Cluster) Apply(file string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(sourceRoot(), "config", file))
	if err != nil {
		c.t.Fatal(err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	for {
		u := &unstructured.Unstructured{}
		switch err := documents.Decode(u); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			c.t.Fatalf("%s: %v", file, err)
		}
		c.Create(u)
	}
}

// As is the configuration of a service account, which may do what its roles say.
func (c *Cluster) As(namespace, account string) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	return config
}

// Await waits until there is no problem any more.
func (c *Cluster) Await(what string, problem func() error) {
	c.t.Helper()
	const patience = 2 * time.Minute
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		err := problem()
		if err == nil {
			return
		}
		if time.Since(began) > patience {
			c.t.Fatalf("not so after %v: %s: %v", patience, what, err)
		}
	}
}
