package controllers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/distribution"
)

// PolicyReconciler writes the status of RateLimitPolicies.
type PolicyReconciler struct {
	Client client.Client
	Feed   *Feed
	// Confirmations are those of every replica.
	Confirmations func() []distribution.Confirmation
	// Shadow tells whether the kill switch is on. Defaults to never.
	Shadow func() bool
	// Events are told of conditions that change.
	Events events.EventRecorder
	// Now defaults to time.Now.
	Now func() time.Time

	steady steady
}

// Reconcile implements reconcile.Reconciler.
func (r *PolicyReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	u := newPolicy()
	if err := r.Client.Get(ctx, request.NamespacedName, u); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if u.GetDeletionTimestamp() != nil {
		r.steady.forget(u.GetUID())
		return ctrl.Result{}, nil
	}
	report, err := r.gather(ctx, u)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := statusOf[v1alpha1.RateLimitPolicyStatus](u)
	after := report.status(before)
	if wait := r.steady.hold(u.GetUID(), &before, &after, report.now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return ctrl.Result{}, r.write(ctx, u, before, after)
}

// gather collects what the status is made of.
func (r *PolicyReconciler) gather(ctx context.Context, u *unstructured.Unstructured) (*reported, error) {
	resolution, err := r.Feed.Resolve(ctx, u)
	if err != nil {
		return nil, err
	}
	report := &reported{generation: u.GetGeneration(), resolution: resolution, now: time.Now()}
	if r.Now != nil {
		report.now = r.Now()
	}
	report.shadow = r.Shadow != nil && r.Shadow()
	if !resolution.usable() {
		return report, nil
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(u.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	report.enforced = survey(nameOf(u), u.GetGeneration(), &resolution.policy.Spec, pods.Items, r.Confirmations())
	return report, nil
}

// write writes a status that says something new, and tells of what has changed.
func (r *PolicyReconciler) write(ctx context.Context, u *unstructured.Unstructured, before, after v1alpha1.RateLimitPolicyStatus) error {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	stored := u.DeepCopy()
	if err := setStatus(u, &after); err != nil {
		return err
	}
	err := r.Client.Status().Patch(ctx, u, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // what changed it comes here, too
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	r.tell(u, before, after)
	return nil
}

// tell makes an event of a Ready condition that has another reason.
func (r *PolicyReconciler) tell(u *unstructured.Unstructured, before, after v1alpha1.RateLimitPolicyStatus) {
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	if r.Events == nil || is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != "True" && is.Reason != v1alpha1.ReasonPending {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(u, nil, kind, is.Reason, "Reconcile", "%s", cut(is.Message))
}
