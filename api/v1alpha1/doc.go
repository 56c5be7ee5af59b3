// Package v1alpha1 holds the custom resources of Weir, group weir.dev, version v1alpha1.
//
// RateLimitPolicy says who may send how many requests in which window, and
// RedisBackend says where the counters live. The types carry their own
// documentation (it becomes `kubectl explain`), their validation (structural
// schema and CEL rules, generated into config/crd) and the names of every
// condition and reason that a status can show.
//
// Fields have no defaults in the schema: Weir never writes a spec, so what a
// user applied is what stays stored and a GitOps tool sees no drift. What an
// absent field means is written at the field and applied by internal/policy.
//
// The package imports nothing but apimachinery.
//
// +kubebuilder:object:generate=true
// +groupName=weir.dev
package v1alpha1
