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
	descriptors map[string][]int32 // rules with match.descriptor, by its keys
}

// NewSet indexes policies. They may belong to other sets, too: the set works on
// copies whose Index is its own.
func NewSet(policies []*Policy) *Set {
	s := &Set{descriptors: map[string][]int32{}}
	sorted := slices.SortedFunc(slices.Values(policies), func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(a.Name.Namespace, b.Name.Namespace), cmp.Compare(a.Name.Name, b.Name.Name))
	})
	resolvers := map[string]*ClientResolver{}
	for _, original := range sorted {
		p := *original
		p.Index = len(s.policies)
		if shared := resolvers[p.compiled.clientSpec]; shared != nil {
			p.compiled.client = shared
		} else {
			resolvers[p.compiled.clientSpec] = p.compiled.client
		}
		s.policies = append(s.policies, &p)
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
	return s
}

// Policies returns the policies by Policy.Index, ordered by namespace and name.
func (s *Set) Policies() []*Policy { return s.policies }

// Rules returns all rules by Rule.Index.
func (s *Set) Rules() []*Rule { return s.rules }

// TrustsPeer tells that some policy believes what this peer forwards.
func (s *Set) TrustsPeer(peer netip.Addr) bool {
	for _, p := range s.policies {
		if p.compiled.client.Trusts(peer) {
			return true
		}
	}
	return false
}

// add puts a rule into the index.
func (s *Set) add(rule *Rule) {
	if d := rule.compiled.match.descriptor; len(d) > 0 {
		key := ""
		for i := range d {
			key += d[i].Key + "\x00"
		}
		s.descriptors[key] = append(s.descriptors[key], int32(rule.Index))
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
