package policy

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// ValidateBackend says all that is wrong with a backend, each with how to mend
// it. It accepts what the CRD's schema accepts.
func ValidateBackend(b *v1alpha1.RedisBackend) field.ErrorList {
	c := &checker{}
	spec, path := &b.Spec, field.NewPath("spec")
	if spec.Mode == "" {
		c.errs = append(c.errs, field.Required(path.Child("mode"), "write Standalone, Sentinel or Cluster"))
	}
	enum(c, path.Child("mode"), spec.Mode, v1alpha1.RedisStandalone, v1alpha1.RedisSentinel, v1alpha1.RedisCluster)
	c.addresses(path.Child("addresses"), spec)
	if spec.Database != nil {
		number(c, path.Child("database"), *spec.Database, 0, 1023)
		if spec.Mode == v1alpha1.RedisCluster {
			c.invalid(path.Child("database"), *spec.Database, "a Redis Cluster has one database: leave database out")
		}
	}
	if (spec.Mode == v1alpha1.RedisSentinel) != (spec.Sentinel != nil) {
		c.invalid(path.Child("sentinel"), "", "sentinel goes with mode Sentinel, and only with it")
	} else if spec.Sentinel != nil {
		c.text(path.Child("sentinel", "masterName"), spec.Sentinel.MasterName, 128, nil, "write the name under which the Sentinels watch the primary")
		c.ref(path.Child("sentinel", "credentialsSecretRef"), spec.Sentinel.CredentialsSecretRef)
	}
	c.ref(path.Child("credentialsSecretRef"), spec.CredentialsSecretRef)
	c.ref(path.Child("hashKeySecretRef"), spec.HashKeySecretRef)
	c.namespaceCredentials(path.Child("namespaceCredentials"), spec.NamespaceCredentials)
	c.tls(path.Child("tls"), spec.TLS)
	c.optional(path.Child("keyPrefix"), spec.KeyPrefix, 32, keyPrefixFormat, "write letters, digits, dots, dashes and underscores")
	if t := spec.Timeouts; t != nil {
		c.timeout(path.Child("timeouts", "dial"), t.Dial, 10*time.Millisecond, 30*time.Second)
		c.timeout(path.Child("timeouts", "decision"), t.Decision, time.Millisecond, 5*time.Second)
	}
	if spec.PoolSize != nil {
		number(c, path.Child("poolSize"), *spec.PoolSize, 1, 1000)
	}
	c.allowedNamespaces(path.Child("allowedNamespaces"), spec.AllowedNamespaces)
	return c.errs
}

func (c *checker) addresses(path *field.Path, spec *v1alpha1.RedisBackendSpec) {
	if len(spec.Addresses) == 0 {
		c.errs = append(c.errs, field.Required(path, "write at least one host:port"))
	}
	c.count(path, len(spec.Addresses), 16)
	if spec.Mode == v1alpha1.RedisStandalone && len(spec.Addresses) > 1 {
		c.invalid(path, spec.Addresses, "mode Standalone takes one address; for several use Sentinel or Cluster")
	}
	const mend = "write host:port, an IPv6 address in brackets, a port up to 65535"
	for i, address := range spec.Addresses {
		at, text := path.Index(i), string(address)
		parts := addressPattern.FindStringSubmatch(text)
		if text == "" || len(text) > 260 || parts == nil {
			c.invalid(at, text, mend)
			continue
		}
		if port, err := strconv.Atoi(parts[3]); err != nil || port > 65535 {
			c.invalid(at, text, mend)
		}
	}
	unique(c, path, spec.Addresses, itself)
}

func (c *checker) ref(path *field.Path, ref *v1alpha1.LocalRef) {
	if ref != nil {
		c.text(path.Child("name"), ref.Name, 253, nil, "write the name of the object")
	}
}

func (c *checker) namespaceCredentials(path *field.Path, list []v1alpha1.NamespaceCredentials) {
	c.count(path, len(list), 64)
	namespaces := make([]string, len(list))
	for i := range list {
		namespaces[i] = list[i].Namespace
		c.text(path.Index(i).Child("namespace"), list[i].Namespace, 63, nil, "write the name of a namespace")
		c.ref(path.Index(i).Child("secretRef"), &list[i].SecretRef)
	}
	unique(c, path, namespaces, func(p *field.Path, i int) *field.Path { return p.Index(i).Child("namespace") })
}

func (c *checker) tls(path *field.Path, tls *v1alpha1.RedisTLS) {
	if tls == nil {
		return
	}
	if tls.CASecretRef != nil && tls.CAConfigMapRef != nil {
		c.invalid(path, "", "set at most one of caSecretRef and caConfigMapRef")
	}
	c.ref(path.Child("caSecretRef"), tls.CASecretRef)
	c.ref(path.Child("caConfigMapRef"), tls.CAConfigMapRef)
	c.ref(path.Child("certSecretRef"), tls.CertSecretRef)
	c.optional(path.Child("serverName"), tls.ServerName, 253, nil, "")
}

func (c *checker) timeout(path *field.Path, text string, least, most time.Duration) {
	if text == "" {
		return
	}
	d, err := ParseTimeout(text)
	if err != nil {
		c.invalid(path, text, err.Error())
	} else if d < least || d > most {
		c.invalid(path, text, "write a time from "+least.String()+" to "+most.String())
	}
}

func (c *checker) allowedNamespaces(path *field.Path, a *v1alpha1.AllowedNamespaces) {
	if a == nil {
		return
	}
	if a.From == "" {
		c.errs = append(c.errs, field.Required(path.Child("from"), "write Same, All or Selector"))
		return
	}
	enum(c, path.Child("from"), a.From, v1alpha1.NamespacesFromSame, v1alpha1.NamespacesFromAll, v1alpha1.NamespacesFromSelector)
	if (a.From == v1alpha1.NamespacesFromSelector) != (a.Selector != nil) {
		c.invalid(path.Child("selector"), "", "selector goes with from: Selector, and only with it")
	}
}
