package standalone

import (
	"crypto/tls"
	"crypto/x509"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/policy"
)

// connect gathers what a backend and the Secrets that it names say. It returns
// nil after reporting what is missing.
func (r *resolver) connect(b *filesource.Backend, secret string) *target {
	known := len(r.problems)
	t := newTarget(policy.Name{Namespace: b.Namespace, Name: b.Name})
	t.config.Mode = b.Spec.Mode
	for _, address := range b.Spec.Addresses {
		t.config.Addresses = append(t.config.Addresses, string(address))
	}
	t.keyPrefix = b.Spec.KeyPrefix
	if b.Spec.Database != nil {
		t.config.Database = int(*b.Spec.Database)
	}
	if b.Spec.PoolSize != nil {
		t.config.PoolSize = int(*b.Spec.PoolSize)
	}
	t.setTimeouts(b.Spec.Timeouts)
	if secret != "" {
		t.config.Username, t.config.Password = r.credentials(b, secretFieldOf(b.RedisBackend, secret), secret)
	}
	if s := b.Spec.Sentinel; s != nil {
		t.config.Sentinel.Master = s.MasterName
		if ref := s.CredentialsSecretRef; ref != nil {
			t.config.Sentinel.Username, t.config.Sentinel.Password = r.credentials(b, "spec.sentinel.credentialsSecretRef", ref.Name)
		}
	}
	if ref := b.Spec.HashKeySecretRef; ref != nil {
		t.hashKey = r.values(b, "spec.hashKeySecretRef", ref.Name, "key")["key"]
	}
	if b.Spec.TLS != nil {
		r.secure(t, b)
	}
	if len(r.problems) > known {
		return nil
	}
	return t
}

// setTimeouts takes over what validation has passed.
func (t *target) setTimeouts(timeouts *v1alpha1.RedisTimeouts) {
	if timeouts == nil {
		return
	}
	if dial, err := policy.ParseTimeout(timeouts.Dial); err == nil {
		t.config.DialTimeout = dial
	}
	if decision, err := policy.ParseTimeout(timeouts.Decision); err == nil {
		t.budget, t.config.Timeout = decision, decision
	}
}

// secretFieldOf is where a backend names its login.
func secretFieldOf(b *v1alpha1.RedisBackend, secret string) string {
	if ref := b.Spec.CredentialsSecretRef; ref != nil && ref.Name == secret {
		return "spec.credentialsSecretRef"
	}
	return "spec.namespaceCredentials"
}

// credentials returns the user of a Secret, who may have no name, and the password.
func (r *resolver) credentials(b *filesource.Backend, field, secret string) (username, password string) {
	values := r.values(b, field, secret, "password")
	return string(values["username"]), string(values["password"])
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

// secure sets up TLS. Every server's certificate is verified: where the backend
// gives no name, against the host that is dialled.
func (r *resolver) secure(t *target, b *filesource.Backend) {
	spec := b.Spec.TLS
	t.config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: spec.ServerName}
	ca := r.authorities(b)
	if ca != nil {
		t.config.TLS.RootCAs = x509.NewCertPool()
		if !t.config.TLS.RootCAs.AppendCertsFromPEM(ca) {
			r.report(b.Source, "spec.tls", "ca.crt holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----")
		}
	}
	var own map[string][]byte
	if ref := spec.CertSecretRef; ref != nil {
		own = r.values(b, "spec.tls.certSecretRef", ref.Name, "tls.crt", "tls.key")
		pair, err := tls.X509KeyPair(own["tls.crt"], own["tls.key"])
		if own != nil && err != nil {
			r.report(b.Source, "spec.tls.certSecretRef", "tls.crt and tls.key of Secret %s/%s are no certificate and its key in PEM form", b.Namespace, ref.Name)
		}
		t.config.TLS.Certificates = []tls.Certificate{pair}
	}
	t.material = strings.Join([]string{spec.ServerName, string(ca), string(own["tls.crt"]), string(own["tls.key"])}, "\x00")
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
