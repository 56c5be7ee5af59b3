package policy

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// ValidateBackend says all that is wrong with a backend, each with how to mend
// it. It accepts what the CRD's schema accepts.
func ValidateBackend(b *v1alpha1.RedisBackend) field.ErrorList {
	c := &checker{}
	spec, path := &b.Spec, field.NewPath("spec")
	known := choice(c, path.Child("mode"), spec.Mode, v1alpha1.RedisStandalone, v1alpha1.RedisSentinel, v1alpha1.RedisCluster)
	c.addresses(path.Child("addresses"), spec)
	number(c, path.Child("database"), spec.Database, 0, 1023)
	if spec.Mode == v1alpha1.RedisCluster && spec.Database != nil {
		c.forbidden(path.Child("database"), "a Redis Cluster has one database: leave database out")
	}
	c.sentinel(path.Child("sentinel"), spec, known)
	c.ref(path.Child("credentialsSecretRef"), spec.CredentialsSecretRef)
	c.namespaceCredentials(path.Child("namespaceCredentials"), spec.NamespaceCredentials)
	c.ref(path.Child("hashKeySecretRef"), spec.HashKeySecretRef)
	c.tls(path.Child("tls"), spec.TLS)
	c.optional(path.Child("keyPrefix"), spec.KeyPrefix, prefixForm)
	if t := spec.Timeouts; t != nil {
		c.timeout(path.Child("timeouts", "dial"), t.Dial, 10*time.Millisecond, 30*time.Second)
		c.timeout(path.Child("timeouts", "decision"), t.Decision, time.Millisecond, 5*time.Second)
	}
	number(c, path.Child("poolSize"), spec.PoolSize, 1, 1000)
	c.allowedNamespaces(path.Child("allowedNamespaces"), spec.AllowedNamespaces)
	return c.errs
}

func (c *checker) addresses(path *field.Path, spec *v1alpha1.RedisBackendSpec) {
	if len(spec.Addresses) == 0 {
		c.required(path, "write at least one host:port")
	}
	if spec.Mode == v1alpha1.RedisStandalone && len(spec.Addresses) > 1 {
		c.errs = append(c.errs, field.Invalid(path, field.OmitValueType{}, "mode Standalone takes one address; for several use Sentinel or Cluster"))
	} else {
		c.count(path, len(spec.Addresses), 16)
	}
	for i, address := range spec.Addresses {
		if !c.text(path.Index(i), string(address), addressForm) {
			continue
		}
		text := string(address)
		if port, err := strconv.Atoi(text[strings.LastIndexByte(text, ':')+1:]); err != nil || port > 65535 {
			c.invalid(path.Index(i), text, "a port is at most 65535")
		}
	}
	unique(c, spec.Addresses, func(i int) *field.Path { return path.Index(i) })
}

// sentinel checks what goes with mode Sentinel, if the mode is a known one.
func (c *checker) sentinel(path *field.Path, spec *v1alpha1.RedisBackendSpec, known bool) {
	wanted := spec.Mode == v1alpha1.RedisSentinel
	switch s := spec.Sentinel; {
	case s == nil && wanted:
		c.required(path, "mode Sentinel takes sentinel: {masterName: …}, the name under which the Sentinels watch the primary")
	case s == nil:
	case known && !wanted:
		c.forbidden(path, "sentinel goes with mode Sentinel, and only with it")
	default:
		c.text(path.Child("masterName"), s.MasterName, masterForm)
		c.ref(path.Child("credentialsSecretRef"), s.CredentialsSecretRef)
	}
}

func (c *checker) ref(path *field.Path, ref *v1alpha1.LocalRef) {
	if ref != nil {
		c.text(path.Child("name"), ref.Name, objectForm)
	}
}

func (c *checker) namespaceCredentials(path *field.Path, list []v1alpha1.NamespaceCredentials) {
	c.count(path, len(list), 64)
	namespaces := make([]string, len(list))
	for i := range list {
		namespaces[i] = list[i].Namespace
		c.text(path.Index(i).Child("namespace"), list[i].Namespace, namespaceForm)
		c.ref(path.Index(i).Child("secretRef"), &list[i].SecretRef)
	}
	unique(c, namespaces, func(i int) *field.Path { return path.Index(i).Child("namespace") })
}

func (c *checker) tls(path *field.Path, tls *v1alpha1.RedisTLS) {
	if tls == nil {
		return
	}
	if tls.CASecretRef != nil && tls.CAConfigMapRef != nil {
		c.forbidden(path, "set at most one of caSecretRef and caConfigMapRef")
	}
	c.ref(path.Child("caSecretRef"), tls.CASecretRef)
	c.ref(path.Child("caConfigMapRef"), tls.CAConfigMapRef)
	c.ref(path.Child("certSecretRef"), tls.CertSecretRef)
	c.optional(path.Child("serverName"), tls.ServerName, serverForm)
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
	known := choice(c, path.Child("from"), a.From, v1alpha1.NamespacesFromSame, v1alpha1.NamespacesFromAll, v1alpha1.NamespacesFromSelector)
	wanted := a.From == v1alpha1.NamespacesFromSelector
	switch {
	case wanted && a.Selector == nil:
		c.required(path.Child("selector"), "from: Selector takes a selector; selector: {} takes every namespace")
	case known && !wanted && a.Selector != nil:
		c.forbidden(path.Child("selector"), "selector goes with from: Selector, and only with it")
	default:
		c.selector(path.Child("selector"), a.Selector)
	}
}
