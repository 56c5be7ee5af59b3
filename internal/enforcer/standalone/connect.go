package standalone

import (
	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/policy"
)

// connect gathers what a backend and the Secrets that it names say. It returns
// nil after reporting what is missing.
func (r *resolver) connect(b *filesource.Backend, secret string) *backends.Target {
	known := len(r.problems)
	var secrets backends.Secrets
	if secret != "" {
		secrets.Login = r.credentials(b, secretFieldOf(b.RedisBackend, secret), secret)
	}
	if s := b.Spec.Sentinel; s != nil && s.CredentialsSecretRef != nil {
		secrets.Sentinel = r.credentials(b, "spec.sentinel.credentialsSecretRef", s.CredentialsSecretRef.Name)
	}
	if ref := b.Spec.HashKeySecretRef; ref != nil {
		secrets.HashKey = r.values(b, "spec.hashKeySecretRef", ref.Name, "key")["key"]
	}
	if b.Spec.TLS != nil {
		secrets.TLS = r.material(b)
	}
	t, faults := backends.Of(policy.Name{Namespace: b.Namespace, Name: b.Name}, &b.Spec, secrets)
	for _, fault := range faults {
		r.report(b.Source, fault.Field, "%s", fault.Message)
	}
	if len(r.problems) > known {
		return nil
	}
	return t
}

// secretFieldOf is where a backend names its login.
func secretFieldOf(b *v1alpha1.RedisBackend, secret string) string {
	if ref := b.Spec.CredentialsSecretRef; ref != nil && ref.Name == secret {
		return "spec.credentialsSecretRef"
	}
	return "spec.namespaceCredentials"
}

// credentials returns the user of a Secret.
func (r *resolver) credentials(b *filesource.Backend, field, secret string) backends.Login {
	values := r.values(b, field, secret, "password")
	return backends.Login{Username: string(values["username"]), Password: string(values["password"])}
}

// values returns a Secret's values, or reports that it or one of the keys is not
// there.
func (r *resolver) values(b *filesource.Backend, field, secret string, keys ...string) map[string][]byte {
	return r.valuesOf(b, field, "Secret", r.Secrets, secret, keys)
}

func (r *resolver) valuesOf(b *filesource.Backend, field, kind string, from map[policy.Name]filesource.Data, name string, keys []string) map[string][]byte {
	data, ok := from[policy.Name{Namespace: b.Namespace, Name: name}]
	if !ok {
		r.report(b.Source, field, "RedisBackend %s/%s needs %s %s/%s, which none of the files holds", b.Namespace, b.Name, kind, b.Namespace, name)
		return nil
	}
	for _, key := range keys {
		if len(data.Values[key]) == 0 {
			r.report(data.Source, "", "%s %s/%s has no value for %s, which RedisBackend %s/%s needs", kind, b.Namespace, name, key, b.Namespace, b.Name)
			return nil
		}
	}
	return data.Values
}

// material gathers what TLS needs.
func (r *resolver) material(b *filesource.Backend) backends.Material {
	m := backends.Material{CA: r.authorities(b)}
	if ref := b.Spec.TLS.CertSecretRef; ref != nil {
		own := r.values(b, "spec.tls.certSecretRef", ref.Name, "tls.crt", "tls.key")
		m.Certificate, m.Key = own["tls.crt"], own["tls.key"]
	}
	return m
}

// authorities returns the certificates that the server's must go back to, nil for
// the system's.
func (r *resolver) authorities(b *filesource.Backend) []byte {
	if ref := b.Spec.TLS.CASecretRef; ref != nil {
		return r.values(b, "spec.tls.caSecretRef", ref.Name, "ca.crt")["ca.crt"]
	}
	if ref := b.Spec.TLS.CAConfigMapRef; ref != nil {
		return r.valuesOf(b, "spec.tls.caConfigMapRef", "ConfigMap", r.ConfigMaps, ref.Name, []string{"ca.crt"})["ca.crt"]
	}
	return nil
}
