package policycache

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Features are the abilities that an enforcer needs for a policy: every kind of
// thing that the spec uses, in order. An enforcer that lacks one is not given the
// policy, since leaving out a condition that it does not know would limit others.
func Features(spec *v1alpha1.RateLimitPolicySpec) []string {
	found := map[string]bool{}
	add := func(kind string, value string) {
		if value != "" {
			found[kind+"."+value] = true
		}
	}
	add("failureMode", string(spec.FailureMode))
	for i := range spec.Rules {
		r := &spec.Rules[i]
		add("algorithm", string(r.Algorithm))
		for _, part := range r.Key {
			add("key", string(part.Type))
		}
		addMatch(add, r.Match)
	}
	for i := range spec.Exempt {
		addMatch(add, &spec.Exempt[i].Match)
	}
	return slices.Sorted(maps.Keys(found))
}

func addMatch(add func(kind, value string), m *v1alpha1.Match) {
	if m == nil {
		return
	}
	for _, p := range m.Paths {
		add("path", string(p.Type))
	}
	for _, h := range m.Headers {
		add("header", string(h.Type))
	}
	if len(m.Descriptor) > 0 {
		add("match", "Descriptor")
	}
}

// Known are the features of the enforcers that are built from this tree.
func Known() []string {
	all := []string{"match.Descriptor"}
	add := func(kind string, values ...string) {
		for _, v := range values {
			all = append(all, kind+"."+v)
		}
	}
	add("failureMode", string(v1alpha1.FailureAllow), string(v1alpha1.FailureDeny), string(v1alpha1.FailureLocalFallback))
	add("algorithm", string(v1alpha1.AlgorithmFixedWindow))
	add("key", string(v1alpha1.KeyClientIP), string(v1alpha1.KeyHeader), string(v1alpha1.KeyCookie), string(v1alpha1.KeyQueryParam),
		string(v1alpha1.KeyPathSegment), string(v1alpha1.KeyPath), string(v1alpha1.KeyHost), string(v1alpha1.KeyMethod), string(v1alpha1.KeyDescriptor))
	add("path", string(v1alpha1.PathMatchExact), string(v1alpha1.PathMatchPrefix), string(v1alpha1.PathMatchRegularExpression))
	add("header", string(v1alpha1.HeaderMatchExact), string(v1alpha1.HeaderMatchPresent), string(v1alpha1.HeaderMatchAbsent), string(v1alpha1.HeaderMatchRegularExpression))
	slices.Sort(all)
	return all
}

// missing returns the features that are needed and not there. Both are sorted.
func missing(needed, have []string) (lacking []string) {
	for _, f := range needed {
		if _, ok := slices.BinarySearch(have, f); !ok {
			lacking = append(lacking, f)
		}
	}
	return lacking
}
