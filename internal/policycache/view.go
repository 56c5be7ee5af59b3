package policycache

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-dev/weir/internal/policy"
)

// View is what an audience sees. It is complete and never changes.
type View struct {
	// Version is equal for equal views.
	Version Digest
	// Policies are in order of their names.
	Policies []*PolicyItem
	// Backends are those that Policies and Withheld count in, in order.
	Backends []*BackendItem
	// Withheld are policies that can't be enforced as they are now. The audience
	// keeps what it had of them.
	Withheld []Withheld
}

// Withheld is a policy that an audience can't enforce, or nobody can: because it is
// invalid or its backend is not known.
type Withheld struct {
	Name       policy.Name
	Generation int64
	// Lacking are the features that the audience lacks, in order.
	Lacking []string
}

// view makes an audience's view.
func (c *Cache) view(a *Audience) *View {
	v := &View{}
	backends := map[LoginName]*BackendItem{}
	for _, name := range c.within(a) {
		item := c.policies[name]
		if !a.sees(item) {
			continue
		}
		b := c.backendFor(item)
		if item.held || b == nil {
			v.Withheld = append(v.Withheld, Withheld{Name: name, Generation: item.Generation})
			continue
		}
		if c.shadow {
			item = item.shadow
		}
		backends[b.LoginName] = b
		if lacking := missing(item.features, a.Features); len(lacking) > 0 {
			v.Withheld = append(v.Withheld, Withheld{name, item.Generation, lacking})
			continue
		}
		told := *item
		told.Login = b.LoginName
		v.Policies = append(v.Policies, &told)
	}
	v.Backends = slices.SortedFunc(maps.Values(backends), func(a, b *BackendItem) int { return a.Compare(b.LoginName) })
	v.Version = v.digest()
	return v
}

// within lists the policies of the namespaces that an audience reaches, in order.
func (c *Cache) within(a *Audience) (names []policy.Name) {
	for namespace, policies := range c.byNamespace {
		if a.reaches(namespace) {
			names = slices.AppendSeq(names, maps.Keys(policies))
		}
	}
	slices.SortFunc(names, compareNames)
	return names
}

// backendFor is a policy's backend with its namespace's login, nil if unknown.
func (c *Cache) backendFor(p *PolicyItem) *BackendItem {
	b := c.backends[p.Login.Backend]
	if b == nil {
		return nil
	}
	if own, ok := b.own[p.Name.Namespace]; ok {
		return own
	}
	return b.shared
}

func (v *View) digest() Digest {
	var parts []any
	for _, p := range v.Policies {
		parts = append(parts, p.Digest, p.Login)
	}
	for _, b := range v.Backends {
		parts = append(parts, b.Digest)
	}
	return digest(append(parts, v.Withheld)...)
}

func compareNames(a, b policy.Name) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Compare orders logins.
func (l LoginName) Compare(other LoginName) int {
	return cmp.Or(compareNames(l.Backend, other.Backend), cmp.Compare(l.Namespace, other.Namespace))
}
