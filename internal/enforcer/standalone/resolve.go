package standalone

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/policy"
)

// resolver finds the target of each policy, and says which are not there, not
// permitted or not complete.
type resolver struct {
	*filesource.Objects
	problems filesource.Problems
	// targets by backend and the Secret that it is logged in to with. nil where
	// problems say why there is none.
	targets map[login]*backends.Target
}

// login tells the targets of one backend apart.
type login struct {
	backend policy.Name
	secret  string
}

// resolve returns the targets by the policies' place in o.Policies. They are
// complete only without problems.
func resolve(o *filesource.Objects) ([]*backends.Target, filesource.Problems) {
	r := &resolver{Objects: o, targets: map[login]*backends.Target{}}
	targets := make([]*backends.Target, len(o.Policies))
	for i := range o.Policies {
		targets[i] = r.targetOf(&o.Policies[i])
	}
	return targets, r.problems
}

// Check says what keeps valid objects from being enforced together.
func Check(o *filesource.Objects) filesource.Problems {
	_, problems := resolve(o)
	return problems
}

func (r *resolver) report(source filesource.Source, field, format string, args ...any) {
	r.problems = append(r.problems, source.At(field, fmt.Sprintf(format, args...)))
}

func (r *resolver) targetOf(p *filesource.Policy) *backends.Target {
	name := backendOf(p)
	b, ok := r.Backends[name]
	switch {
	case !ok && r.HasBackend(name):
		return nil // its own problems say why
	case !ok && p.Spec.RedisRef == nil:
		r.report(p.Source, "spec", "policy %s/%s has no redisRef, and none of the files holds RedisBackend %s, the default; known: %s", p.Namespace, p.Name, name, r.known())
		return nil
	case !ok:
		r.report(p.Source, "spec.redisRef", "policy %s/%s: redisRef names RedisBackend %s, which none of the files holds; known: %s", p.Namespace, p.Name, name, r.known())
		return nil
	case !permits(b.RedisBackend, p.Namespace):
		r.report(p.Source, "spec.redisRef", "policy %s/%s: RedisBackend %s does not permit policies of namespace %s; see its spec.allowedNamespaces in %s", p.Namespace, p.Name, name, p.Namespace, b.Place())
		return nil
	}
	as := login{name, backends.SecretFor(b.RedisBackend, p.Namespace)}
	t, ok := r.targets[as]
	if !ok {
		t = r.connect(&b, as.secret)
		r.targets[as] = t
	}
	return t
}

func (r *resolver) known() string {
	var names []string
	for name := range maps.Keys(r.Backends) {
		names = append(names, name.String())
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// backendOf names the backend of a policy.
func backendOf(p *filesource.Policy) policy.Name {
	return backends.NameFor(p.Namespace, p.Spec.RedisRef)
}

// permits follows allowedNamespaces. Files know no namespaces' labels but the one
// that every namespace has, its name.
func permits(b *v1alpha1.RedisBackend, namespace string) bool {
	return backends.Permits(b, namespace, map[string]string{"kubernetes.io/metadata.name": namespace})
}
