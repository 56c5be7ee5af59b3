package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "weir.dev", Version: "v1alpha1"}

// SchemeBuilder collects the functions that register this package's types.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers this package's types with a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

// Kinds as they stand in a manifest.
const (
	KindRateLimitPolicy = "RateLimitPolicy"
	KindRedisBackend    = "RedisBackend"
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&RateLimitPolicy{}, &RateLimitPolicyList{},
		&RedisBackend{}, &RedisBackendList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
