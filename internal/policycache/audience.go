package policycache

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Audience is what an enforcer is, as its credential says.
type Audience struct {
	// Namespace and Labels are a sidecar's pod's: it sees the policies of its
	// namespace whose selector matches.
	Namespace string
	Labels    map[string]string
	// Gateway tells a gateway enforcer, which sees the policies with a domain of
	// Namespaces instead. "*" stands for all.
	Gateway    bool
	Namespaces []string
	// Features are what it can do.
	Features []string
}

// everyNamespace is what a gateway for all namespaces names.
const everyNamespace = "*"

// key is equal for audiences that see the same.
func (a *Audience) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %t", a.Namespace, a.Gateway)
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		fmt.Fprintf(&b, " %q=%q", name, a.Labels[name])
	}
	fmt.Fprintf(&b, " %q %q", a.Namespaces, a.Features)
	return b.String()
}

// normal is a with lists in order and labels that nobody else changes.
func (a Audience) normal() Audience {
	a.Labels = maps.Clone(a.Labels)
	a.Namespaces = slices.Compact(slices.Sorted(slices.Values(a.Namespaces)))
	a.Features = slices.Compact(slices.Sorted(slices.Values(a.Features)))
	return a
}

// reaches tells whether policies of a namespace may concern the audience.
func (a *Audience) reaches(namespace string) bool {
	if !a.Gateway {
		return a.Namespace == namespace
	}
	return slices.Contains(a.Namespaces, everyNamespace) || slices.Contains(a.Namespaces, namespace)
}

// sees tells whether a policy concerns the audience.
func (a *Audience) sees(p *PolicyItem) bool {
	switch {
	case !a.reaches(p.Name.Namespace):
		return false
	case p.held:
		return true
	case a.Gateway:
		return p.domain
	}
	return p.selector.matches(a.Labels)
}

// selector is a policy's, nil for none.
type selector struct{ labels.Selector }

func newSelector(s *metav1.LabelSelector) (selector, error) {
	if s == nil {
		return selector{}, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	return selector{parsed}, err
}

func (s selector) matches(set map[string]string) bool {
	return s.Selector != nil && s.Matches(labels.Set(set))
}
