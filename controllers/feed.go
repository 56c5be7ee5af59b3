package controllers

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// Feed fills the policy cache with what is in the cluster.
type Feed struct {
	// Cached reads what the process watches.
	Cached client.Reader
	// Live reads what it does not: Secrets, ConfigMaps.
	Live client.Reader
	// Into is what is filled.
	Into *policycache.Cache
	// StandIn is the backend of policies that name none, where their namespace has
	// no default. Its name may be empty.
	StandIn policy.Name
	// Changed is told of backends whose references were resolved anew. It must not
	// block.
	Changed func(backend policy.Name)

	mu       sync.Mutex
	problems map[policy.Name]problem // of backends
}

// Fill takes over all that there is, and then lets the cache be seen.
func (f *Feed) Fill(ctx context.Context) error {
	if err := f.each(ctx, "RedisBackend", f.Backend); err != nil {
		return err
	}
	if err := f.each(ctx, "RateLimitPolicy", f.Policy); err != nil {
		return err
	}
	f.Into.Synced()
	return nil
}

func (f *Feed) each(ctx context.Context, kind string, take func(context.Context, policy.Name) error) error {
	list := listOf(kind)
	if err := f.Cached.List(ctx, list); err != nil {
		return fmt.Errorf("list %s: %w", kind, err)
	}
	for i := range list.Items {
		if err := take(ctx, nameOf(&list.Items[i])); err != nil {
			return err
		}
	}
	return nil
}

// Policy takes a policy over as it is now.
func (f *Feed) Policy(ctx context.Context, name policy.Name) error {
	u, err := f.find(ctx, newPolicy(), name)
	if err != nil {
		return err
	}
	if u == nil {
		f.Into.DeletePolicy(name)
		return nil
	}
	r, err := f.Resolve(ctx, u)
	if err != nil {
		return err
	}
	if !r.usable() {
		f.Into.HoldPolicy(name)
		return nil
	}
	return f.Into.SetPolicy(r.cached(u))
}

// Resolve finds out what keeps a policy from being enforced.
func (f *Feed) Resolve(ctx context.Context, u *unstructured.Unstructured) (*resolution, error) {
	var failed error
	s := surroundings{standIn: f.StandIn, secrets: f.problemOf}
	s.backend = func(name policy.Name) *unstructured.Unstructured {
		found, err := f.find(ctx, newBackend(), name)
		if err != nil {
			failed = err
		}
		return found
	}
	var namespace corev1.Namespace
	switch err := f.Cached.Get(ctx, types.NamespacedName{Name: u.GetNamespace()}, &namespace); {
	case err == nil:
		s.labels = namespace.Labels
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	r := resolve(u, s)
	return r, failed
}

// Backend takes a backend over as it is now, with what it refers to. While that is
// not complete, what was known of it stays.
func (f *Feed) Backend(ctx context.Context, name policy.Name) error {
	u, err := f.find(ctx, newBackend(), name)
	if err != nil {
		return err
	}
	if u == nil {
		f.note(name, problem{}, true)
		f.Into.DeleteBackend(name)
		return nil
	}
	b, ok := validBackend(u)
	if !ok {
		f.note(name, problem{}, true) // its status and its policies say so themselves
		return nil
	}
	whole, missing, err := gather(ctx, f.Live, b)
	if err != nil {
		return err
	}
	f.note(name, missing, false)
	if missing != (problem{}) {
		return nil
	}
	return f.Into.SetBackend(whole)
}

// note remembers what is wrong with a backend's references.
func (f *Feed) note(name policy.Name, p problem, gone bool) {
	f.mu.Lock()
	if f.problems == nil {
		f.problems = map[policy.Name]problem{}
	}
	if gone {
		delete(f.problems, name)
	} else {
		f.problems[name] = p
	}
	f.mu.Unlock()
	f.Changed(name)
}

// problemOf is what is wrong with a backend's references.
func (f *Feed) problemOf(name policy.Name) problem {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problems[name]
}

// find reads an object, nil if there is none.
func (f *Feed) find(ctx context.Context, into *unstructured.Unstructured, name policy.Name) (*unstructured.Unstructured, error) {
	err := f.Cached.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", into.GetKind(), name, err)
	}
	return into, nil
}
