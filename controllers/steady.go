package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	// lasting is how long a cause must last before Enforced falls.
	lasting = 10 * time.Second
	// arriving is how long a new generation may take to be confirmed before the
	// status says that it is pending.
	arriving = time.Second
)

// steady keeps statuses from flapping. It remembers since when a policy has been
// worse off than its status says.
type steady struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// hold tells how long a status must wait that says less than the one before.
// 0 means that it may be written.
func (s *steady) hold(uid types.UID, before, after *v1alpha1.RateLimitPolicyStatus, now time.Time) time.Duration {
	patience := patienceWith(before, after)
	s.mu.Lock()
	defer s.mu.Unlock()
	if patience == 0 {
		delete(s.since, uid)
		return 0
	}
	if s.since == nil {
		s.since = map[types.UID]time.Time{}
	}
	since, ok := s.since[uid]
	if !ok {
		since = now
		s.since[uid] = now
	}
	return max(0, patience-now.Sub(since))
}

func (s *steady) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, uid)
}

// patienceWith is how long to wait before a status takes another's place.
func patienceWith(before, after *v1alpha1.RateLimitPolicyStatus) time.Duration {
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionEnforced)
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionEnforced)
	switch {
	case is == nil || meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionEnforced):
		return 0
	case is.Reason == v1alpha1.ReasonPending && before.ObservedGeneration != after.ObservedGeneration:
		return arriving
	case was == nil || before.ObservedGeneration != after.ObservedGeneration || was.Status == is.Status:
		return 0
	case is.Reason == v1alpha1.ReasonDisabled:
		return 0
	}
	return lasting
}
