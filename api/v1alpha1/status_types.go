package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RateLimitPolicyStatus is what is in force, as observed.
type RateLimitPolicyStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Accepted, ResolvedRefs, Enforced and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Limits of the rules, for example 100/1m.
	// +optional
	Limits string `json:"limits,omitempty"`

	// Key is who is counted, for example X-User-Id.
	// +optional
	Key string `json:"key,omitempty"`

	// Mode in force: the spec's, or Shadow while the kill switch is on.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// FailureMode in force.
	// +optional
	FailureMode FailureMode `json:"failureMode,omitempty"`

	// Redis is the RedisBackend in use, namespace/name.
	// +optional
	Redis string `json:"redis,omitempty"`

	// Target is what enforces the policy: the pods' labels, the domain, or both.
	// +optional
	Target string `json:"target,omitempty"`

	// Enforcers counts who enforces the policy.
	// +optional
	Enforcers *EnforcerCounts `json:"enforcers,omitempty"`
}

// EnforcerCounts counts who enforces a policy.
type EnforcerCounts struct {
	// Matched is how many enforcers should enforce it.
	// +optional
	Matched int32 `json:"matched"`

	// Enforcing is how many confirmed this generation and reach Redis.
	// +optional
	Enforcing int32 `json:"enforcing"`

	// Uncovered is how many matched pods run without an enforcer.
	// +optional
	Uncovered int32 `json:"uncovered"`

	// Summary is enforcing/matched, for example 3/3.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// RedisBackendStatus is what the last check of a Redis found.
type RedisBackendStatus struct {
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready and EvictionRisk.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Version of the server, for example 7.2.4.
	// +optional
	Version string `json:"version,omitempty"`

	// Role of the server that answered, for example master.
	// +optional
	Role string `json:"role,omitempty"`
}
