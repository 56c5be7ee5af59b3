package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Texts of columns are cut at this length.
const longestText = 120

// reported is what a policy's status is made of.
type reported struct {
	generation int64
	resolution *resolution
	// enforced says who enforces it; only looked at where it is usable.
	enforced enforcement
	// shadow tells that the kill switch is on.
	shadow bool
	now    time.Time
}

// status is a policy's new status, in place of the one before.
func (r *reported) status(before v1alpha1.RateLimitPolicyStatus) v1alpha1.RateLimitPolicyStatus {
	spec := &r.resolution.policy.Spec
	s := v1alpha1.RateLimitPolicyStatus{
		ObservedGeneration: r.generation,
		Conditions:         slices.Clone(before.Conditions),
		Limits:             cut(limitsOf(spec)),
		Key:                cut(keyOf(spec)),
		Mode:               r.mode(),
		FailureMode:        orDefault(spec.FailureMode, v1alpha1.FailureAllow),
		Redis:              r.resolution.backend.String(),
		Target:             cut(targetOf(spec)),
	}
	set := func(kind string, met bool, p problem) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: conditionStatus(met), Reason: p.reason, Message: cutMessage(p.message),
			ObservedGeneration: r.generation, LastTransitionTime: metav1.NewTime(r.now),
		})
	}
	accepted := r.resolution.accepted
	if accepted == (problem{}) {
		set(v1alpha1.ConditionAccepted, true, problem{v1alpha1.ReasonValid, "the spec is valid"})
	} else {
		set(v1alpha1.ConditionAccepted, false, accepted)
	}
	resolved := r.resolution.resolved
	if resolved == (problem{}) {
		set(v1alpha1.ConditionResolvedRefs, true, problem{v1alpha1.ReasonResolved, "RedisBackend " + s.Redis + " is complete"})
	} else {
		set(v1alpha1.ConditionResolvedRefs, false, resolved)
	}
	if !r.resolution.usable() {
		cause := accepted
		if cause == (problem{}) {
			cause = resolved
		}
		set(v1alpha1.ConditionEnforced, false, problem{cause.reason, "what enforcers had of the policy stays in force: " + cause.message})
		set(v1alpha1.ConditionReady, false, cause)
		return s
	}
	met, cause := r.enforced.judge(s.Mode)
	set(v1alpha1.ConditionEnforced, met, cause)
	set(v1alpha1.ConditionReady, met || nothingToWaitFor[cause.reason], cause)
	s.Enforcers = r.enforced.counts()
	return s
}

// nothingToWaitFor are the reasons that end a GitOps tool's wait although nothing
// is enforced.
var nothingToWaitFor = map[string]bool{v1alpha1.ReasonDisabled: true, v1alpha1.ReasonNoMatchingWorkload: true}

func (r *reported) mode() v1alpha1.Mode {
	mode := orDefault(r.resolution.policy.Spec.Mode, v1alpha1.ModeEnforce)
	if r.shadow && mode == v1alpha1.ModeEnforce {
		return v1alpha1.ModeShadow
	}
	return mode
}

func (e *enforcement) counts() *v1alpha1.EnforcerCounts {
	return &v1alpha1.EnforcerCounts{
		Matched: int32(e.matched), Enforcing: int32(e.enforcing), Uncovered: int32(len(e.uncovered)),
		Summary: fmt.Sprintf("%d/%d", e.enforcing, e.matched),
	}
}

func conditionStatus(met bool) metav1.ConditionStatus {
	if met {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func orDefault[T ~string](value, absent T) T {
	if value == "" {
		return absent
	}
	return value
}

// limitsOf lists limits with their windows as they were written.
func limitsOf(spec *v1alpha1.RateLimitPolicySpec) string {
	var list []string
	for _, rule := range spec.Rules {
		if rule.Limit != nil {
			list = append(list, fmt.Sprintf("%d/%s", *rule.Limit, rule.Window))
		}
	}
	return strings.Join(list, ",")
}

// keyOf lists who is counted, each way once.
func keyOf(spec *v1alpha1.RateLimitPolicySpec) string {
	var list []string
	for _, rule := range spec.Rules {
		var parts []string
		for _, part := range rule.Key {
			if part.Name != "" {
				parts = append(parts, part.Name)
			} else {
				parts = append(parts, string(part.Type))
			}
		}
		text := strings.Join(parts, "+")
		if text == "" {
			text = "everyone"
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ",")
}

func targetOf(spec *v1alpha1.RateLimitPolicySpec) string {
	var list []string
	if s := spec.Selector; s != nil {
		var terms []string
		for _, name := range slices.Sorted(maps.Keys(s.MatchLabels)) {
			terms = append(terms, name+"="+s.MatchLabels[name])
		}
		for _, e := range s.MatchExpressions {
			terms = append(terms, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, "|"))))
		}
		if len(terms) == 0 {
			terms = []string{"every pod"}
		}
		list = append(list, strings.Join(terms, ","))
	}
	if spec.Domain != "" {
		list = append(list, "domain "+spec.Domain)
	}
	return strings.Join(list, "; ")
}

func cut(text string) string { return cutAt(text, longestText) }

// cutMessage keeps a condition's message within what the API takes.
func cutMessage(text string) string { return cutAt(text, 4096) }

func cutAt(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:longest-len(more)], "") + more
}
