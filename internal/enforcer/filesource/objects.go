package filesource

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// The kinds that are read.
const (
	kindPolicy    = "RateLimitPolicy"
	kindBackend   = "RedisBackend"
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// defaultNamespace is where an object is that names no namespace, as for kubectl.
const defaultNamespace = "default"

// Objects are what a set of files holds.
type Objects struct {
	Policies   []Policy
	Backends   map[policy.Name]Backend
	Secrets    map[policy.Name]Data
	ConfigMaps map[policy.Name]Data
	// Warnings are odd, but no reason to refuse the files.
	Warnings Problems

	first map[identity]Source
}

// Policy is a valid RateLimitPolicy.
type Policy struct {
	*v1alpha1.RateLimitPolicy
	Source
}

// Backend is a valid RedisBackend.
type Backend struct {
	*v1alpha1.RedisBackend
	Source
}

// Data are the values of a Secret or a ConfigMap.
type Data struct {
	Values map[string][]byte
	Source
}

// identity tells objects apart.
type identity struct {
	kind string
	policy.Name
}

// HasBackend tells that the files hold a RedisBackend of that name, if perhaps
// one with problems.
func (o *Objects) HasBackend(name policy.Name) bool {
	_, ok := o.first[identity{kindBackend, name}]
	return ok
}

// Parse makes objects of files. Those with problems are left out.
func Parse(files []File) (*Objects, Problems) {
	o := &Objects{
		Backends:   map[policy.Name]Backend{},
		Secrets:    map[policy.Name]Data{},
		ConfigMaps: map[policy.Name]Data{},
		first:      map[identity]Source{},
	}
	var problems Problems
	for _, f := range files {
		documents, found := parseFile(f)
		for _, d := range documents {
			found = append(found, o.add(d)...)
		}
		slices.SortStableFunc(found, byLine)
		problems = append(problems, found...)
	}
	return o, problems
}

func byLine(a, b Problem) int { return cmp.Compare(a.Line, b.Line) }

// add reads one document into an object.
func (o *Objects) add(d *document) Problems {
	source := Source{d}
	h, problems := d.header()
	if len(problems) > 0 {
		return problems
	}
	if h.kind == "" {
		o.Warnings = append(o.Warnings, source.At("kind", h.ignored))
		return nil
	}
	id := identity{h.kind, h.name}
	if first, ok := o.first[id]; ok {
		return Problems{source.At("metadata.name", fmt.Sprintf("%s %s stands in the files twice, first in %s; remove one", h.kind, h.name, first.Place()))}
	}
	o.first[id] = source
	switch h.kind {
	case kindPolicy:
		p, problems := decode(d, policy.DecodePolicy, policy.ValidatePolicy)
		if len(problems) > 0 {
			return problems
		}
		p.Namespace = h.name.Namespace
		o.Policies = append(o.Policies, Policy{p, source})
		for _, warning := range policy.Warnings(p) {
			o.Warnings = append(o.Warnings, source.At("spec.rules", warning))
		}
		return nil
	case kindBackend:
		b, problems := decode(d, policy.DecodeBackend, policy.ValidateBackend)
		if len(problems) > 0 {
			return problems
		}
		b.Namespace = h.name.Namespace
		o.Backends[h.name] = Backend{b, source}
		return nil
	case kindSecret:
		return addData[secret](o.Secrets, h.name, source)
	default:
		return addData[configMap](o.ConfigMaps, h.name, source)
	}
}

// valued is a pointer to an object that carries values.
type valued[T any] interface {
	*T
	values() map[string][]byte
}

func addData[T any, P valued[T]](to map[policy.Name]Data, name policy.Name, source Source) Problems {
	object, problems := decode(source.document, unmarshal[T], nil)
	if len(problems) == 0 {
		to[name] = Data{P(object).values(), source}
	}
	return problems
}
