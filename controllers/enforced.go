package controllers

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/distribution"
	"github.com/weir-dev/weir/internal/policy"
)

// ContainerName is the name of the container that makes a pod an enforcer.
const ContainerName = "weir"

// enforcement is who should enforce a policy, and who does.
type enforcement struct {
	matched, enforcing int
	// uncovered are pods without an enforcer, pending have not confirmed, cutOff
	// don't reach Redis, in order. lacking are features that some enforcer lacks.
	uncovered, pending, cutOff, lacking []string
}

// survey looks at the pods and gateways that a policy is for.
func survey(name policy.Name, generation int64, spec *v1alpha1.RateLimitPolicySpec, pods []corev1.Pod, confirmations []distribution.Confirmation) enforcement {
	var e enforcement
	byPod := map[string]*distribution.Confirmation{}
	for i := range confirmations {
		c := &confirmations[i]
		byPod[c.Namespace+"/"+c.Pod+"/"+c.UID] = c
		if c.Gateway && spec.Domain != "" {
			e.add(c.Namespace+"/"+c.Pod, name, generation, c)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if spec.Selector == nil || err != nil {
		selector = labels.Nothing()
	}
	for i := range pods {
		p := &pods[i]
		if !isReady(p) || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		if !CarriesEnforcer(p) {
			e.matched++
			e.uncovered = append(e.uncovered, p.Name)
			continue
		}
		e.add(p.Name, name, generation, byPod[p.Namespace+"/"+p.Name+"/"+string(p.UID)])
	}
	for _, list := range [][]string{e.uncovered, e.pending, e.cutOff, e.lacking} {
		slices.Sort(list)
	}
	e.lacking = slices.Compact(e.lacking)
	return e
}

func (e *enforcement) add(who string, name policy.Name, generation int64, c *distribution.Confirmation) {
	e.matched++
	if c == nil || c.Set == nil {
		e.pending = append(e.pending, who)
		return
	}
	e.lacking = append(e.lacking, c.Set.Withheld[name]...)
	confirmed, ok := c.Set.Policies[name]
	switch {
	case !ok || confirmed.Generation != generation:
		e.pending = append(e.pending, who)
	case !c.Reaches(confirmed.Login):
		e.cutOff = append(e.cutOff, who)
	default:
		e.enforcing++
	}
}

func isReady(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// CarriesEnforcer tells whether a pod has an enforcer.
func CarriesEnforcer(p *corev1.Pod) bool {
	is := func(c corev1.Container) bool { return c.Name == ContainerName }
	return slices.ContainsFunc(p.Spec.InitContainers, is) || slices.ContainsFunc(p.Spec.Containers, is)
}

// judge is the condition Enforced of a policy in this mode.
func (e *enforcement) judge(mode v1alpha1.Mode) (met bool, p problem) {
	switch {
	case mode == v1alpha1.ModeDisabled:
		return false, problem{v1alpha1.ReasonDisabled, "the policy is Disabled"}
	case e.matched == 0:
		return false, problem{v1alpha1.ReasonNoMatchingWorkload, "no ready pod is selected, and no gateway asks for the domain"}
	case len(e.lacking) > 0:
		return false, problem{v1alpha1.ReasonUnsupportedByEnforcer, fmt.Sprintf(
			"some enforcers are too old and keep the policy as it was; they lack %s: restart their pods", strings.Join(e.lacking, ", "))}
	case len(e.uncovered) > 0:
		return false, problem{v1alpha1.ReasonNotInjected, fmt.Sprintf(
			"%s have no sidecar: label the pod template weir.dev/inject and restart them", some(e.uncovered))}
	case len(e.pending) > 0:
		return false, problem{v1alpha1.ReasonPending, fmt.Sprintf("%s have not confirmed this generation yet", some(e.pending))}
	case len(e.cutOff) > 0:
		return false, problem{v1alpha1.ReasonRedisUnreachable, fmt.Sprintf("%s don't reach Redis", some(e.cutOff))}
	case mode == v1alpha1.ModeShadow:
		return true, problem{v1alpha1.ReasonShadow, fmt.Sprintf("%d of %d enforcers count, and never deny", e.enforcing, e.matched)}
	}
	return true, problem{v1alpha1.ReasonEnforced, fmt.Sprintf("%d of %d enforcers enforce this generation", e.enforcing, e.matched)}
}

// some names a few of many.
func some(names []string) string {
	const few = 3
	text := fmt.Sprintf("%d of the pods (%s", len(names), strings.Join(names[:min(len(names), few)], ", "))
	if len(names) > few {
		text += ", …"
	}
	return text + ")"
}
