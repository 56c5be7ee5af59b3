package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-dev/weir/internal/policy"
)

// Signals wake the controllers for what Kubernetes does not tell.
type Signals struct {
	// confirmed carries namespaces whose enforcers have something else in force, ""
	// for all; resolved carries backends whose references were resolved anew.
	confirmed, resolved chan event.GenericEvent
	// alsoResolved carries the same to a second controller. nil without one.
	alsoResolved chan event.GenericEvent
}

// NewSignals returns signals that nobody listens to yet.
func NewSignals() *Signals {
	const many = 1024
	return &Signals{confirmed: make(chan event.GenericEvent, many), resolved: make(chan event.GenericEvent, many)}
}

// Confirmed tells that enforcers of a namespace, or gateways, have something else in
// force.
func (s *Signals) Confirmed(namespace string, gateway bool) {
	if gateway {
		namespace = ""
	}
	send(s.confirmed, namespace, "")
}

// Resolved tells that a backend's references were resolved anew.
func (s *Signals) Resolved(name policy.Name) {
	send(s.resolved, name.Namespace, name.Name)
	if s.alsoResolved != nil {
		send(s.alsoResolved, name.Namespace, name.Name)
	}
}

// send does not block: a controller that is so far behind looks at all anyway.
func send(to chan event.GenericEvent, namespace, name string) {
	u := ofKind("Signal")
	u.SetNamespace(namespace)
	u.SetName(name)
	select {
	case to <- event.GenericEvent{Object: u}:
	default:
	}
}

// everywhere lets a controller run on every replica, leader or not.
var everywhere = controller.Options{NeedLeaderElection: new(bool)}

// SetupFeed has every replica keep its cache up to date.
func SetupFeed(m manager.Manager, f *Feed, s *Signals) error {
	if err := m.Add(filling{f}); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(m).Named("feed-policies").WithOptions(everywhere).
		For(newPolicy()).
		Watches(newBackend(), handler.EnqueueRequestsFromMapFunc(f.usersOf)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(f.allOf)).
		WatchesRawSource(source.Channel(s.resolved, handler.EnqueueRequestsFromMapFunc(f.usersOf))).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, f.Policy(ctx, policy.Name{Namespace: r.Namespace, Name: r.Name})
		}))
	if err != nil {
		return err
	}
	secret, configMap := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	configMap.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return ctrl.NewControllerManagedBy(m).Named("feed-backends").WithOptions(everywhere).
		For(newBackend()).
		WatchesMetadata(secret, handler.EnqueueRequestsFromMapFunc(f.referrers)).
		WatchesMetadata(configMap, handler.EnqueueRequestsFromMapFunc(f.referrers)).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, f.Backend(ctx, policy.Name{Namespace: r.Namespace, Name: r.Name})
		}))
}

// filling runs once on every replica.
type filling struct{ *Feed }

// Start implements manager.Runnable.
func (f filling) Start(ctx context.Context) error { return f.Fill(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (filling) NeedLeaderElection() bool { return false }

// SetupPolicies has the leader write the status of policies.
func SetupPolicies(m manager.Manager, r *PolicyReconciler, s *Signals) error {
	return ctrl.NewControllerManagedBy(m).Named("policies").
		For(newPolicy()).
		Watches(newBackend(), handler.EnqueueRequestsFromMapFunc(r.Feed.usersOf)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.Feed.neighbours)).
		WatchesRawSource(source.Channel(s.confirmed, handler.EnqueueRequestsFromMapFunc(r.Feed.neighbours))).
		Complete(r)
}

// usersOf maps a backend to the policies that count in it, or would.
func (f *Feed) usersOf(ctx context.Context, backend client.Object) []reconcile.Request {
	name := policy.Name{Namespace: backend.GetNamespace(), Name: backend.GetName()}
	list := listOf("RateLimitPolicy")
	if err := f.Cached.List(ctx, list); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		u := &list.Items[i]
		if refersTo(u, name, f.StandIn) {
			requests = append(requests, requestFor(u))
		}
	}
	return requests
}

// allOf maps a namespace to its policies.
func (f *Feed) allOf(ctx context.Context, namespace client.Object) []reconcile.Request {
	return f.within(ctx, namespace.GetName())
}

// neighbours maps an object to the policies of its namespace, of all if it has none.
func (f *Feed) neighbours(ctx context.Context, o client.Object) []reconcile.Request {
	return f.within(ctx, o.GetNamespace())
}

func (f *Feed) within(ctx context.Context, namespace string) []reconcile.Request {
	list := listOf("RateLimitPolicy")
	if err := f.Cached.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, requestFor(&list.Items[i]))
	}
	return requests
}

// referrers maps a Secret or a ConfigMap to the backends that name it.
func (f *Feed) referrers(ctx context.Context, o client.Object) []reconcile.Request {
	list := listOf("RedisBackend")
	if err := f.Cached.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		u := &list.Items[i]
		b, err := decodeBackend(u)
		if err != nil {
			continue
		}
		for _, name := range references(&b.Spec) {
			if name == o.GetName() {
				requests = append(requests, requestFor(u))
			}
		}
	}
	return requests
}

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}
