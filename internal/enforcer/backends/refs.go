package backends

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// DefaultName is the RedisBackend that policies without a redisRef count in.
const DefaultName = "default"

// NameFor names the backend of a namespace's policy.
func NameFor(namespace string, ref *v1alpha1.RedisRef) policy.Name {
	name := policy.Name{Namespace: namespace, Name: DefaultName}
	if ref != nil {
		name.Name = ref.Name
		if ref.Namespace != "" {
			name.Namespace = ref.Namespace
		}
	}
	return name
}

// Permits tells whether policies of a namespace with such labels may use a backend.
func Permits(b *v1alpha1.RedisBackend, namespace string, set map[string]string) bool {
	allowed := b.Spec.AllowedNamespaces
	if b.Namespace == namespace {
		return true
	}
	if allowed == nil {
		return false
	}
	switch allowed.From {
	case v1alpha1.NamespacesFromAll:
		return true
	case v1alpha1.NamespacesFromSelector:
		selector, err := metav1.LabelSelectorAsSelector(allowed.Selector)
		return err == nil && selector.Matches(labels.Set(set))
	}
	return false
}

// SecretFor names the Secret by which policies of a namespace log in, "" for none.
func SecretFor(b *v1alpha1.RedisBackend, namespace string) string {
	for _, own := range b.Spec.NamespaceCredentials {
		if own.Namespace == namespace {
			return own.SecretRef.Name
		}
	}
	if b.Spec.CredentialsSecretRef != nil {
		return b.Spec.CredentialsSecretRef.Name
	}
	return ""
}
