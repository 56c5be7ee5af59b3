package policycache

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
)

// Policy is a RateLimitPolicy whose spec is valid and whose backend is known.
type Policy struct {
	Name       policy.Name
	Generation int64
	Spec       v1alpha1.RateLimitPolicySpec
	// Backend is where it counts, as its redisRef or the defaults say.
	Backend policy.Name
}

// Backend is a RedisBackend, and all that it refers to.
type Backend struct {
	Name policy.Name
	Spec v1alpha1.RedisBackendSpec
	// Secrets are for the policies of every namespace without a login of its own.
	Secrets backends.Secrets
	// Own are the logins of namespaces that have one.
	Own map[string]backends.Login
}

// secretsFor are a backend's secrets as the policies of a namespace use them.
func (b *Backend) secretsFor(namespace string) backends.Secrets {
	secrets := b.Secrets
	if own, ok := b.Own[namespace]; ok {
		secrets.Login = own
	}
	return secrets
}

// Digest stands for content.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal digits, short enough for a log.
func (d Digest) String() string { return fmt.Sprintf("%x", d[:8]) }

// PolicyItem is a policy in a View.
type PolicyItem struct {
	Name       policy.Name
	Generation int64
	// JSON is the spec.
	JSON []byte
	// Login is the backend item that the policy counts in.
	Login LoginName
	// Digest is of all that an enforcer is told of the policy.
	Digest Digest

	held     bool // as HoldPolicy says
	features []string
	domain   bool
	selector selector
	shadow   *PolicyItem // the same with the kill switch on
}

// LoginName names a backend as the policies of a namespace log in to it. Several
// namespaces may see one backend through a gateway, each with a login of its own.
type LoginName struct {
	Backend policy.Name
	// Namespace has a login of its own there. "" for the backend's.
	Namespace string
}

// BackendItem is a backend in a View.
type BackendItem struct {
	LoginName
	// JSON is the spec.
	JSON    []byte
	Secrets backends.Secrets
	// Digest is of all that an enforcer is told of the backend, secrets included.
	Digest Digest
}

func (p *Policy) item(shadow bool) (*PolicyItem, error) {
	spec := p.Spec
	if shadow && spec.Mode != v1alpha1.ModeDisabled {
		spec.Mode = v1alpha1.ModeShadow
	}
	data, err := json.Marshal(&spec)
	if err != nil {
		return nil, err
	}
	selects, err := newSelector(p.Spec.Selector)
	if err != nil {
		return nil, err
	}
	item := &PolicyItem{
		Name: p.Name, Generation: p.Generation, JSON: data, Login: LoginName{Backend: p.Backend},
		features: Features(&p.Spec), domain: p.Spec.Domain != "", selector: selects,
	}
	item.Digest = digest("policy", p.Name, p.Generation, string(data), item.Login)
	return item, nil
}

func (b *Backend) item(namespace string) (*BackendItem, error) {
	data, err := json.Marshal(&b.Spec)
	if err != nil {
		return nil, err
	}
	item := &BackendItem{LoginName: b.loginOf(namespace), JSON: data, Secrets: b.secretsFor(namespace)}
	item.Digest = digest("backend", item.LoginName, string(data), item.Secrets)
	return item, nil
}

// loginOf names the login that policies of a namespace use.
func (b *Backend) loginOf(namespace string) LoginName {
	if _, ok := b.Own[namespace]; ok {
		return LoginName{b.Name, namespace}
	}
	return LoginName{Backend: b.Name}
}

// digest is equal for equal values, which are texts, numbers and structs of them.
func digest(values ...any) Digest {
	h := sha256.New()
	for _, v := range values {
		text := fmt.Sprintf("%#v", v)
		_, _ = fmt.Fprintf(h, "%d:%s", len(text), text) // a hash takes everything
	}
	return Digest(h.Sum(nil))
}
