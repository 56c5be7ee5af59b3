package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// reader gathers what a backend refers to, straight from the API server: Secrets
// are not kept in memory that nobody needs.
type reader struct {
	client.Reader
	ctx     context.Context
	backend *v1alpha1.RedisBackend
	problem problem
	err     error // of the API server, for another try
}

// gather returns a backend with all that it refers to, or what is missing.
func gather(ctx context.Context, c client.Reader, b *v1alpha1.RedisBackend) (policycache.Backend, problem, error) {
	r := &reader{Reader: c, ctx: ctx, backend: b}
	out := policycache.Backend{Name: policy.Name{Namespace: b.Namespace, Name: b.Name}, Spec: b.Spec, Own: map[string]backends.Login{}}
	out.Secrets.Login = r.login(b.Spec.CredentialsSecretRef)
	for _, own := range b.Spec.NamespaceCredentials {
		out.Own[own.Namespace] = r.login(&own.SecretRef)
	}
	if s := b.Spec.Sentinel; s != nil {
		out.Secrets.Sentinel = r.login(s.CredentialsSecretRef)
	}
	if ref := b.Spec.HashKeySecretRef; ref != nil {
		out.Secrets.HashKey = r.secret(ref.Name, "key")["key"]
	}
	if t := b.Spec.TLS; t != nil {
		if t.CASecretRef != nil {
			out.Secrets.TLS.CA = r.secret(t.CASecretRef.Name, "ca.crt")["ca.crt"]
		} else if t.CAConfigMapRef != nil {
			out.Secrets.TLS.CA = r.configMap(t.CAConfigMapRef.Name, "ca.crt")
		}
		if t.CertSecretRef != nil {
			own := r.secret(t.CertSecretRef.Name, "tls.crt", "tls.key")
			out.Secrets.TLS.Certificate, out.Secrets.TLS.Key = own["tls.crt"], own["tls.key"]
		}
	}
	if r.problem == (problem{}) && r.err == nil {
		r.material(&b.Spec, out.Secrets)
	}
	return out, r.problem, r.err
}

// material notes what is no certificate or key.
func (r *reader) material(spec *v1alpha1.RedisBackendSpec, secrets backends.Secrets) {
	_, faults := backends.Of(policy.Name{Namespace: r.backend.Namespace, Name: r.backend.Name}, spec, secrets)
	for _, fault := range faults {
		r.miss(v1alpha1.ReasonSecretKeyMissing, "%s: %s", fault.Field, fault.Message)
	}
}

func (r *reader) login(ref *v1alpha1.LocalRef) backends.Login {
	if ref == nil {
		return backends.Login{}
	}
	values := r.secret(ref.Name, "password")
	return backends.Login{Username: string(values["username"]), Password: string(values["password"])}
}

// miss notes the first thing that is missing.
func (r *reader) miss(reason, format string, args ...any) {
	if r.problem == (problem{}) {
		r.problem = problem{reason, fmt.Sprintf(format, args...)}
	}
}

// secret returns a Secret's values, which must hold these keys.
func (r *reader) secret(name string, keys ...string) map[string][]byte {
	var s corev1.Secret
	if !r.get(&s, "Secret", name) {
		return nil
	}
	for _, key := range keys {
		if len(s.Data[key]) == 0 {
			r.miss(v1alpha1.ReasonSecretKeyMissing, "Secret %s/%s has no value for %s", r.backend.Namespace, name, key)
			return nil
		}
	}
	return s.Data
}

func (r *reader) configMap(name, key string) []byte {
	var m corev1.ConfigMap
	if !r.get(&m, "ConfigMap", name) {
		return nil
	}
	if m.Data[key] == "" {
		r.miss(v1alpha1.ReasonSecretKeyMissing, "ConfigMap %s/%s has no value for %s", r.backend.Namespace, name, key)
	}
	return []byte(m.Data[key])
}

func (r *reader) get(into client.Object, kind, name string) bool {
	err := r.Get(r.ctx, types.NamespacedName{Namespace: r.backend.Namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		r.miss(v1alpha1.ReasonSecretNotFound, "there is no %s %s/%s", kind, r.backend.Namespace, name)
	case err != nil && r.err == nil:
		r.err = fmt.Errorf("read %s %s/%s: %w", kind, r.backend.Namespace, name, err)
	}
	return err == nil
}

// references lists the Secrets and ConfigMaps that a backend names.
func references(spec *v1alpha1.RedisBackendSpec) []string {
	var names []string
	add := func(ref *v1alpha1.LocalRef) {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	add(spec.CredentialsSecretRef)
	add(spec.HashKeySecretRef)
	for i := range spec.NamespaceCredentials {
		add(&spec.NamespaceCredentials[i].SecretRef)
	}
	if spec.Sentinel != nil {
		add(spec.Sentinel.CredentialsSecretRef)
	}
	if t := spec.TLS; t != nil {
		add(t.CASecretRef)
		add(t.CAConfigMapRef)
		add(t.CertSecretRef)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
