package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RateLimitPolicy limits how many requests callers may send.
//
// Every matching rule of every matching policy counts a request, and any
// enforced rule that is over its limit denies it with 429. Counters live in the
// Redis that redisRef names; the window is fixed and aligned to the epoch in
// UTC, so a 24h window turns at midnight UTC and a 7d window on Thursdays.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=ratelimitpolicies,singular=ratelimitpolicy,shortName=wrl,categories=weir
// +kubebuilder:printcolumn:name="Limits",type=string,JSONPath=`.status.limits`,description="Limit and window of each rule"
// +kubebuilder:printcolumn:name="Key",type=string,JSONPath=`.status.key`,description="Who is counted"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`,description="Mode in force, kill switch included"
// +kubebuilder:printcolumn:name="Enforcers",type=string,JSONPath=`.status.enforcers.summary`,description="Enforcers that enforce this generation, of those that should"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Redis",type=string,JSONPath=`.status.redis`,priority=1,description="RedisBackend in use"
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failureMode`,priority=1,description="What happens while Redis cannot answer"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`,priority=1,description="Pods and doors that enforce the policy"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RateLimitPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec says what is limited. Weir never changes it.
	// +required
	Spec RateLimitPolicySpec `json:"spec"`

	// Status says what is in force, as observed.
	// +optional
	Status RateLimitPolicyStatus `json:"status,omitzero"`
}

// RateLimitPolicyList is a list of RateLimitPolicy.
//
// +kubebuilder:object:root=true
type RateLimitPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RateLimitPolicy `json:"items"`
}

// RateLimitPolicySpec says what is limited, for whom, and what happens then.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.domain)",message="set selector (pods whose sidecars enforce the policy), domain (doors that ask for it), or both; selector: {} takes every pod of the namespace"
type RateLimitPolicySpec struct {
	// Selector picks the pods of this namespace whose sidecars enforce the
	// policy. {} picks every pod of the namespace; absent picks none.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchExpressions) ? self.matchExpressions.all(e, e.key.size() > 0 && (e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : (e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0)))) : true",message="in matchExpressions each has a key; the operators In and NotIn take values, Exists and DoesNotExist take none, and there are no others"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Domain is the name under which decision doors ask for the policy, written
	// <namespace>/<domain> at the door.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	Domain string `json:"domain,omitempty"`

	// RedisRef names the RedisBackend that keeps the counters. Absent means the
	// RedisBackend "default" of this namespace, then the manager's default.
	// +optional
	RedisRef *RedisRef `json:"redisRef,omitempty"`

	// Mode is Enforce, Shadow (decide, count and report, never deny) or
	// Disabled (not counted at all). Absent means Enforce.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// FailureMode says what happens to a request when Redis cannot answer in
	// time: Allow lets it through, Deny answers 503, LocalFallback counts in
	// the enforcer's own memory meanwhile. Absent means Allow.
	// +optional
	FailureMode FailureMode `json:"failureMode,omitempty"`

	// ClientAddress says how the caller's address is found behind proxies.
	// Absent means the enforcer's default, which trusts nobody and takes the
	// address of the connection.
	// +optional
	ClientAddress *ClientAddress `json:"clientAddress,omitempty"`

	// Request says how requests are read before they are matched.
	// +optional
	Request *RequestOptions `json:"request,omitempty"`

	// Response says what answers tell the caller.
	// +optional
	Response *ResponseOptions `json:"response,omitempty"`

	// Exempt lists requests that this policy's rules neither count nor deny.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Exempt []Exemption `json:"exempt,omitempty"`

	// Rules are the limits. Every matching rule counts the request; any enforced
	// rule that is over denies it.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Rules []Rule `json:"rules"`
}

// RedisRef names a RedisBackend.
type RedisRef struct {
	// Name of the RedisBackend.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`

	// Namespace of the RedisBackend. Absent means the policy's own. Another
	// namespace works where the backend's allowedNamespaces permits it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// Mode says whether a policy denies.
// +kubebuilder:validation:Enum=Enforce;Shadow;Disabled
type Mode string

// The modes of a policy.
const (
	// ModeEnforce denies requests that are over a limit.
	ModeEnforce Mode = "Enforce"
	// ModeShadow decides, counts and reports, but never denies.
	ModeShadow Mode = "Shadow"
	// ModeDisabled neither counts nor denies.
	ModeDisabled Mode = "Disabled"
)

// FailureMode says what happens to a request that Redis could not decide.
// +kubebuilder:validation:Enum=Allow;Deny;LocalFallback
type FailureMode string

// The failure modes of a policy.
const (
	// FailureAllow lets the request through, without quota headers.
	FailureAllow FailureMode = "Allow"
	// FailureDeny answers 503 with a problem type of its own.
	FailureDeny FailureMode = "Deny"
	// FailureLocalFallback counts in the enforcer's memory, with this
	// enforcer's share of the limit.
	FailureLocalFallback FailureMode = "LocalFallback"
)

// ClientAddress says whom to believe about the caller's address.
//
// +kubebuilder:validation:XValidation:rule="has(self.trustedProxies) != has(self.trustedHops)",message="set exactly one of trustedProxies and trustedHops"
type ClientAddress struct {
	// TrustedProxies are the addresses of your own proxies, as CIDRs or bare
	// addresses. The forwarding header is walked from the right to the first
	// address outside these.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	TrustedProxies []AddressRange `json:"trustedProxies,omitempty"`

	// TrustedHops is how many proxies stand in front of the enforcer: 1 means
	// that the connection's peer is trusted and the right-most entry of the
	// header is the caller. 0 trusts nobody.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	TrustedHops *int32 `json:"trustedHops,omitempty"`

	// Header is read from trusted peers only. X-Forwarded-For is a list; any
	// other header (CF-Connecting-IP, True-Client-IP, X-Real-IP …) is a single
	// address. Absent means X-Forwarded-For.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`
	Header string `json:"header,omitempty"`

	// IPv6PrefixLength is how many leading bits of an IPv6 address make one
	// caller, because one user holds a whole prefix. Absent means 64.
	// +optional
	// +kubebuilder:validation:Minimum=32
	// +kubebuilder:validation:Maximum=128
	IPv6PrefixLength *int32 `json:"ipv6PrefixLength,omitempty"`
}

// AddressRange is a CIDR such as 10.0.0.0/8 or a bare address. Host bits are
// ignored.
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isCIDR(self) || isIP(self)",message="write a CIDR such as 10.0.0.0/8 or an address such as 192.0.2.7"
type AddressRange string
