package policy

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Set is all policies that an enforcer holds, indexed so that a request meets
// only the rules that can match it. It never changes.
type Set struct {
	policies    []*Policy
	rules       []*Rule
	groups      []*formIndex
	descriptors map[string][]int32 // rules with match.descriptor, by its entries
	resolvers   []*ClientResolver
}

// NewSet indexes policies. They may belong to other sets, too: the set works on
// copies whose Index is its own.
func NewSet(policies []*Policy) *Set {
	s := &Set{descriptors: map[string][]int32{}}
	sorted := slices.SortedStableFunc(slices.Values(policies), func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(a.Name.Namespace, b.Name.Namespace), cmp.Compare(a.Name.Name, b.Name.Name))
	})
	resolvers := map[string]*ClientResolver{}
	for _, original := range sorted {
		s.addPolicy(original, resolvers)
	}
	return s
}

// addPolicy adds a copy of a policy. Policies that see callers alike share one
// resolver, so that an address is looked for once a request.
func (s *Set) addPolicy(original *Policy, resolvers map[string]*ClientResolver) {
	p := *original
	p.Index = len(s.policies)
	s.policies = append(s.policies, &p)
	shared := resolvers[p.compiled.clientSpec]
	if shared == nil {
		shared = p.compiled.client
		resolvers[p.compiled.clientSpec] = shared
		s.resolvers = append(s.resolvers, shared)
	}
	p.compiled.client = shared
	p.Rules = make([]*Rule, len(original.Rules))
	for i := range original.Rules {
		rule := *original.Rules[i]
		rule.Policy, rule.Index = &p, len(s.rules)
		p.Rules[i] = &rule
		s.rules = append(s.rules, &rule)
		if p.Mode != v1alpha1.ModeDisabled {
			s.add(&rule)
		}
	}
}

// Policies returns the policies by Policy.Index, ordered by namespace and name.
func (s *Set) Policies() []*Policy { return s.policies }

// Rules returns all rules by Rule.Index.
func (s *Set) Rules() []*Rule { return s.rules }

// TrustsPeer tells that some policy believes what this peer forwards.
func (s *Set) TrustsPeer(peer netip.Addr) bool {
	return slices.ContainsFunc(s.resolvers, func(r *ClientResolver) bool { return r.Trusts(peer) })
}

// add puts a rule into the index.
func (s *Set) add(rule *Rule) {
	if len(rule.compiled.match.descriptor) > 0 {
		s.addDescriptor(rule)
		return
	}
	form := rule.Policy.compiled.form
	i := slices.IndexFunc(s.groups, func(g *formIndex) bool { return g.form == form })
	if i < 0 {
		i = len(s.groups)
		s.groups = append(s.groups, newFormIndex(form))
	}
	s.groups[i].add(rule)
}
