package controllers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policycache"
)

// checkEvery is how often a backend is checked, give or take a quarter.
const checkEvery = time.Minute

// BackendReconciler writes the status of RedisBackends.
type BackendReconciler struct {
	Client client.Client
	// Live reads Secrets and ConfigMaps.
	Live client.Reader
	// Check looks at a Redis. Defaults to redisstore.Check.
	Check func(context.Context, redisstore.Config, redisstore.Probe) redisstore.Report
}

// SetupBackends has the leader write the status of backends.
func SetupBackends(m manager.Manager, r *BackendReconciler, s *Signals) error {
	resolved := make(chan event.GenericEvent, cap(s.resolved))
	s.alsoResolved = resolved
	return ctrl.NewControllerManagedBy(m).Named("backends").
		For(newBackend()).
		WatchesRawSource(source.Channel(resolved, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *BackendReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	u := newBackend()
	if err := r.Client.Get(ctx, request.NamespacedName, u); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if u.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	before := statusOf[v1alpha1.RedisBackendStatus](u)
	found := finding{generation: u.GetGeneration(), now: time.Now()}
	b, err := decodeBackend(u)
	if err != nil {
		found.problem = problem{v1alpha1.ReasonInvalid, err.Error()}
	} else if err := r.look(ctx, b, &found); err != nil {
		return ctrl.Result{}, err
	}
	after := found.status(before)
	next := ctrl.Result{RequeueAfter: checkEvery*3/4 + rand.N(checkEvery/2)}
	if reflect.DeepEqual(before, after) {
		return next, nil
	}
	stored := u.DeepCopy()
	if err := setStatus(u, &after); err != nil {
		return ctrl.Result{}, err
	}
	err = r.Client.Status().Patch(ctx, u, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("write status: %w", err)
	}
	return next, nil
}

// look gathers what the backend refers to, and checks each login.
func (r *BackendReconciler) look(ctx context.Context, b *v1alpha1.RedisBackend, found *finding) error {
	whole, missing, err := gather(ctx, r.Live, b)
	if err != nil {
		return err
	}
	if missing != (problem{}) {
		found.problem = missing
		return nil
	}
	check := r.Check
	if check == nil {
		check = redisstore.Check
	}
	for _, l := range logins(&whole) {
		t, faults := backends.Of(whole.Name, &b.Spec, l.secrets)
		if len(faults) > 0 {
			continue // gather has said so
		}
		report := check(ctx, t.Config, redisstore.Probe{KeyPrefix: t.KeyPrefix, Namespaces: l.namespaces})
		found.take(l.namespaces, report)
		if report.Fault != "" {
			return nil
		}
	}
	return nil
}

// loginOf is one way to log in to a backend, and the namespaces that do.
type loginOf struct {
	namespaces []string
	secrets    backends.Secrets
}

// logins are those of namespaces with their own, and the shared one where there is
// one or nothing else.
func logins(b *policycache.Backend) []loginOf {
	var list []loginOf
	for namespace, own := range b.Own {
		secrets := b.Secrets
		secrets.Login = own
		list = append(list, loginOf{[]string{namespace}, secrets})
	}
	slices.SortFunc(list, func(x, y loginOf) int { return slices.Compare(x.namespaces, y.namespaces) })
	if b.Spec.CredentialsSecretRef != nil || len(list) == 0 {
		list = append(list, loginOf{[]string{b.Name.Namespace}, b.Secrets})
	}
	return list
}

// finding is what is known of a backend now.
type finding struct {
	generation int64
	problem    problem
	facts      *redisstore.Facts
	now        time.Time
}

// take takes a report over. Its words are Weir's own: none are a server's.
func (f *finding) take(namespaces []string, report redisstore.Report) {
	f.facts = &report.Facts
	if report.Fault != "" {
		f.problem = problem{reasonOf(report.Fault), fmt.Sprintf("policies of namespace %s: %s", namespaces[0], report.Message())}
	}
}

// reasonOf sorts faults into the reasons of a status.
func reasonOf(fault redisstore.Fault) string {
	switch fault {
	case redisstore.FaultLoginRequired, redisstore.FaultWrongLogin, redisstore.FaultNoLogin:
		return v1alpha1.ReasonWrongCredentials
	case redisstore.FaultMissingRights, redisstore.FaultMissingCommand:
		return v1alpha1.ReasonPermissionMissing
	case redisstore.FaultTLSRequired, redisstore.FaultTLSNotSpoken, redisstore.FaultTLSUnknownAuthority, redisstore.FaultTLSNameMismatch,
		redisstore.FaultTLSExpired, redisstore.FaultTLSUnsuited, redisstore.FaultTLSClientCertificate,
		redisstore.FaultTLSClientNotAccepted, redisstore.FaultTLSHandshake:
		return v1alpha1.ReasonTLSFailed
	case redisstore.FaultSentinelNoMaster:
		return v1alpha1.ReasonSentinelNoMaster
	case redisstore.FaultSentinelLoginRequired, redisstore.FaultSentinelWrongLogin:
		return v1alpha1.ReasonSentinelWrongCredentials
	case redisstore.FaultReadOnly:
		return v1alpha1.ReasonReadOnly
	case redisstore.FaultLoading, redisstore.FaultBusy, redisstore.FaultClusterDown, redisstore.FaultWritesStopped:
		return v1alpha1.ReasonNotReady
	case redisstore.FaultOutOfMemory:
		return v1alpha1.ReasonOutOfMemory
	case redisstore.FaultNotSentinel, redisstore.FaultIsSentinel, redisstore.FaultNotCluster, redisstore.FaultIsCluster, redisstore.FaultNoDatabase:
		return v1alpha1.ReasonUnexpectedMode
	}
	return v1alpha1.ReasonUnreachable
}

// status is the new status in place of the one before. What is not known now is
// left as it was.
func (f *finding) status(before v1alpha1.RedisBackendStatus) v1alpha1.RedisBackendStatus {
	s := *before.DeepCopy()
	s.ObservedGeneration = f.generation
	set := func(kind string, met bool, p problem) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: conditionStatus(met), Reason: p.reason, Message: cutMessage(p.message),
			ObservedGeneration: f.generation, LastTransitionTime: metav1.NewTime(f.now),
		})
	}
	if f.facts != nil && f.facts.Version != "" {
		s.Version, s.Role = f.facts.Version, f.facts.Role
	}
	if f.facts != nil {
		switch f.facts.Eviction {
		case redisstore.EvictionRisk:
			set(v1alpha1.ConditionEvictionRisk, true, problem{v1alpha1.ReasonEvictionPolicy,
				"when its memory is full the server drops keys, counters among them: set maxmemory-policy to noeviction, or use a Redis of its own"})
		case redisstore.EvictionNever:
			set(v1alpha1.ConditionEvictionRisk, false, problem{v1alpha1.ReasonNoEviction, "the server drops no counters"})
		}
	}
	if f.problem != (problem{}) {
		set(v1alpha1.ConditionReady, false, f.problem)
		return s
	}
	set(v1alpha1.ConditionReady, true, problem{v1alpha1.ReasonConnected, "logged in, and the script ran"})
	return s
}
