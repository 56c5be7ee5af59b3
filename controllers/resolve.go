package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// problem is what keeps a condition from being True. The zero value is none.
type problem struct{ reason, message string }

// surroundings are what a policy's spec refers to.
type surroundings struct {
	// backend finds a RedisBackend, nil if there is none.
	backend func(policy.Name) *unstructured.Unstructured
	// secrets is what is wrong with a backend's own references.
	secrets func(policy.Name) problem
	// labels are of the policy's namespace.
	labels map[string]string
	// standIn is the backend of policies that name none, where their namespace has
	// no default. Its name may be empty.
	standIn policy.Name
}

// resolution is what became of a policy's spec.
type resolution struct {
	policy *v1alpha1.RateLimitPolicy // as far as it could be read
	// accepted and resolved say why the conditions are not met.
	accepted, resolved problem
	backend            policy.Name
}

// usable tells that enforcers can be told of the policy.
func (r *resolution) usable() bool { return r.accepted == (problem{}) && r.resolved == (problem{}) }

// cached is the policy for the cache.
func (r *resolution) cached(u *unstructured.Unstructured) policycache.Policy {
	return policycache.Policy{Name: nameOf(u), Generation: u.GetGeneration(), Spec: r.policy.Spec, Backend: r.backend}
}

// resolve finds out what keeps a policy from being enforced.
func resolve(u *unstructured.Unstructured, s surroundings) *resolution {
	r := &resolution{}
	var err error
	if r.policy, err = decodePolicy(u); err != nil {
		r.accepted = problem{v1alpha1.ReasonInvalid, err.Error()}
	}
	r.backend = backends.NameFor(u.GetNamespace(), r.policy.Spec.RedisRef)
	found := s.backend(r.backend)
	if found == nil && r.policy.Spec.RedisRef == nil && s.standIn.Name != "" {
		r.backend = s.standIn
		found = s.backend(r.backend)
	}
	r.resolved = refer(r.backend, found, u.GetNamespace(), s)
	return r
}

// refer is what keeps policies of a namespace from using a backend.
func refer(name policy.Name, found *unstructured.Unstructured, namespace string, s surroundings) problem {
	if found == nil {
		return problem{v1alpha1.ReasonBackendNotFound, fmt.Sprintf(
			"there is no RedisBackend %s: create it, or name another one in spec.redisRef", name)}
	}
	b, err := decodeBackend(found)
	if err != nil {
		return problem{v1alpha1.ReasonBackendNotFound, fmt.Sprintf("RedisBackend %s is not valid: see its status", name)}
	}
	if !backends.Permits(b, namespace, s.labels) {
		return problem{v1alpha1.ReasonBackendNotPermitted, fmt.Sprintf(
			"RedisBackend %s does not permit policies of namespace %s: see its spec.allowedNamespaces", name, namespace)}
	}
	return s.secrets(name)
}

// refersTo tells whether a policy counts in a backend, or would if it were there.
func refersTo(u *unstructured.Unstructured, backend, standIn policy.Name) bool {
	p, _ := decodePolicy(u) // as far as it can be read
	return backends.NameFor(u.GetNamespace(), p.Spec.RedisRef) == backend || p.Spec.RedisRef == nil && backend == standIn
}
