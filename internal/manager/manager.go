// Package manager puts together what runs in the cluster: controllers that fill the
// policy cache and write statuses, and the stream that enforcers follow.
package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/internal/distribution"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
	"github.com/weir-dev/weir/internal/tokens"
)

// Config is what a Manager needs to know.
type Config struct {
	Cluster *rest.Config
	// StreamListen, HealthListen and MetricsListen are host:port; "0" turns the last
	// two off.
	StreamListen, HealthListen, MetricsListen string
	// CertFile and KeyFile are the stream's certificate. They are read anew when they
	// change.
	CertFile, KeyFile string
	// DefaultBackend is for policies that name none, where their namespace has no
	// RedisBackend "default". Its name may be empty.
	DefaultBackend policy.Name
	// Shadow is the kill switch: no policy denies.
	Shadow bool
	// LeaderElection is for more than one replica; Namespace is where its Lease is.
	LeaderElection bool
	Namespace      string
	Logger         *slog.Logger
}

// Manager is the controllers and the stream.
type Manager struct {
	config   Config
	manager  ctrl.Manager
	cache    *policycache.Cache
	stream   *distribution.Server
	listener net.Listener
}

// New prepares a Manager, which listens but does not answer yet.
func New(ctx context.Context, config Config) (*Manager, error) {
	scheme := apiruntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	logger := logr.FromSlogHandler(config.Logger.Handler())
	ctrl.SetLogger(logger)
	cm, err := ctrl.NewManager(config.Cluster, ctrl.Options{
		Scheme: scheme, Logger: logger,
		// Names are unique here; a second Manager in a process is a test's.
		Controller:             ctrlconfig.Controller{SkipNameValidation: new(true)},
		Metrics:                server.Options{BindAddress: config.MetricsListen},
		HealthProbeBindAddress: config.HealthListen,
		LeaderElection:         config.LeaderElection, LeaderElectionID: "weir-manager", LeaderElectionNamespace: config.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: slim}}},
		// Objects of these kinds are read as they are stored, and one by one.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	})
	if err != nil {
		return nil, err
	}
	m := &Manager{config: config, manager: cm, cache: policycache.New()}
	m.cache.SetShadow(config.Shadow)
	if err := m.setup(); err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	if m.listener, err = listen.Listen(ctx, "tcp", config.StreamListen); err != nil {
		return nil, fmt.Errorf("%w; choose another address with --stream-listen", err)
	}
	return m, nil
}

// slim drops what nobody reads of a pod: there are many.
func slim(o any) (any, error) {
	if pod, ok := o.(*corev1.Pod); ok {
		keep := &corev1.Pod{ObjectMeta: pod.ObjectMeta}
		keep.ManagedFields, keep.Annotations = nil, nil
		keep.Status.Conditions = pod.Status.Conditions
		for _, c := range pod.Spec.InitContainers {
			keep.Spec.InitContainers = append(keep.Spec.InitContainers, corev1.Container{Name: c.Name})
		}
		for _, c := range pod.Spec.Containers {
			keep.Spec.Containers = append(keep.Spec.Containers, corev1.Container{Name: c.Name})
		}
		return keep, nil
	}
	return o, nil
}

// setup wires the parts to each other.
func (m *Manager) setup() error {
	signals := controllers.NewSignals()
	reviews, err := authenticationclient.NewForConfig(m.config.Cluster)
	if err != nil {
		return err
	}
	m.stream = distribution.NewServer(distribution.ServerOptions{
		Cache: m.cache, Changed: signals.Confirmed, Logger: m.config.Logger,
		Authenticate: &tokens.Reviewer{Reviews: reviews.TokenReviews(), Pods: m.manager.GetClient(), Carries: controllers.CarriesEnforcer},
	})
	feed := &controllers.Feed{
		Cached: m.manager.GetClient(), Live: m.manager.GetAPIReader(), Into: m.cache,
		StandIn: m.config.DefaultBackend, Changed: signals.Resolved,
	}
	if err := m.followPods(); err != nil {
		return err
	}
	return errors.Join(
		controllers.SetupBackends(m.manager, &controllers.BackendReconciler{Client: m.manager.GetClient(), Live: m.manager.GetAPIReader()}, signals),
		controllers.SetupFeed(m.manager, feed, signals),
		controllers.SetupPolicies(m.manager, &controllers.PolicyReconciler{
			Client: m.manager.GetClient(), Feed: feed, Confirmations: m.stream.Confirmations,
			Shadow: func() bool { return m.config.Shadow }, Events: m.manager.GetEventRecorder("weir"),
		}, signals),
		m.manager.AddHealthzCheck("ping", healthz.Ping),
		m.manager.AddReadyzCheck("policies", m.ready),
		m.manager.Add(serving{m}),
	)
}

// followPods tells the stream of pods that go or change.
func (m *Manager) followPods() error {
	informer, err := m.manager.GetCache().GetInformer(context.Background(), &corev1.Pod{})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(podEvents{m.stream})
	return err
}

// podEvents hands what concerns it to the stream.
type podEvents struct{ stream *distribution.Server }

// OnAdd implements cache.ResourceEventHandler.
func (podEvents) OnAdd(any, bool) {}

// OnUpdate implements cache.ResourceEventHandler.
func (e podEvents) OnUpdate(_, now any) {
	if pod, ok := now.(*corev1.Pod); ok {
		e.stream.PodChanged(pod.Namespace, pod.Name, pod.Labels)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (e podEvents) OnDelete(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if pod, ok := o.(*corev1.Pod); ok {
		e.stream.PodGone(pod.Namespace, pod.Name, string(pod.UID))
	}
}

// ready is an error until the cache knows all.
func (m *Manager) ready(_ *http.Request) error {
	if _, ok := m.cache.View(policycache.Audience{}); !ok {
		return errors.New("the policy cache is not full yet")
	}
	return nil
}

// StreamAddr is where enforcers connect.
func (m *Manager) StreamAddr() string { return m.listener.Addr().String() }

// Run works until ctx ends. A Manager runs once.
func (m *Manager) Run(ctx context.Context) error { return m.manager.Start(ctx) }

// serving is the stream, on every replica.
type serving struct{ *Manager }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (serving) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s serving) Start(ctx context.Context) error {
	certificate, err := certwatcher.New(s.config.CertFile, s.config.KeyFile)
	if err != nil {
		return fmt.Errorf("the stream's certificate: %w", err)
	}
	go func() { _ = certificate.Start(ctx) }()
	grpc := distribution.NewGRPC(&tls.Config{GetCertificate: certificate.GetCertificate, MinVersion: tls.VersionTLS13})
	s.stream.Register(grpc)
	context.AfterFunc(ctx, func() {
		s.stream.Close()
		done := time.AfterFunc(5*time.Second, grpc.Stop)
		defer done.Stop()
		grpc.GracefulStop()
	})
	s.config.Logger.Info("enforcers may connect", "address", s.StreamAddr())
	return grpc.Serve(s.listener)
}
