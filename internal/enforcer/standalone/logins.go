package standalone

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// Login is a way in which policies log in to a backend: all of them, or those of
// some namespaces.
type Login struct {
	// Backend is where.
	Backend policy.Name
	// Secret says as whom; "" for nobody.
	Secret string
	// Source is where the backend stands in the files.
	Source filesource.Source

	config redisstore.Config
	probe  redisstore.Probe
}

// Check connects, and says whether policies can be counted there.
func (l *Login) Check(ctx context.Context) redisstore.Report {
	return redisstore.Check(ctx, l.config, l.probe)
}

// Logins returns the logins of all backends that the files hold, those that no
// policy uses too, and what keeps some from being complete.
func Logins(o *filesource.Objects) ([]Login, filesource.Problems) {
	r := &resolver{Objects: o}
	var logins []Login
	for _, name := range slices.SortedFunc(maps.Keys(o.Backends), compareNames) {
		b := o.Backends[name]
		users := r.usersOf(&b)
		for _, secret := range slices.Sorted(maps.Keys(users)) {
			known := len(r.problems)
			t := r.connect(&b, secret)
			if t == nil {
				r.problems = append(r.problems[:known], unheard(r.problems[:known], r.problems[known:])...)
				continue
			}
			namespaces := slices.Sorted(maps.Keys(users[secret]))
			logins = append(logins, Login{name, secret, b.Source, t.Config, redisstore.Probe{KeyPrefix: t.KeyPrefix, Namespaces: namespaces}})
		}
	}
	return logins, r.problems
}

// unheard leaves out what two logins of a backend have in common.
func unheard(known, found filesource.Problems) filesource.Problems {
	return slices.DeleteFunc(slices.Clone(found), func(p filesource.Problem) bool { return slices.Contains(known, p) })
}

func compareNames(a, b policy.Name) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// usersOf returns the namespaces that log in to a backend, by Secret: those with a
// Secret of their own, those of policies, and the backend's.
func (r *resolver) usersOf(b *filesource.Backend) map[string]map[string]bool {
	users := map[string]map[string]bool{}
	add := func(namespace string) {
		secret := backends.SecretFor(b.RedisBackend, namespace)
		if users[secret] == nil {
			users[secret] = map[string]bool{}
		}
		users[secret][namespace] = true
	}
	for _, own := range b.Spec.NamespaceCredentials {
		add(own.Namespace)
	}
	for i := range r.Policies {
		p := &r.Policies[i]
		if backendOf(p) == (policy.Name{Namespace: b.Namespace, Name: b.Name}) && permits(b.RedisBackend, p.Namespace) {
			add(p.Namespace)
		}
	}
	// Where every namespace has a Secret of its own, nobody need log in without.
	if b.Spec.CredentialsSecretRef != nil || len(users) == 0 {
		add(b.Namespace)
	}
	return users
}
