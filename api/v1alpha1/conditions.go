package v1alpha1

// Conditions of a RateLimitPolicy. Ready = Accepted ∧ ResolvedRefs ∧ (Enforced ∨
// nothing to wait for), so that a GitOps tool's wait ends.
const (
	// ConditionAccepted is True when the spec is valid.
	// Reasons: Valid, Invalid.
	ConditionAccepted = "Accepted"

	// ConditionResolvedRefs is True when the RedisBackend and its Secrets were
	// found and may be used. Reasons: Resolved, BackendNotFound,
	// BackendNotPermitted, SecretNotFound, SecretKeyMissing.
	ConditionResolvedRefs = "ResolvedRefs"

	// ConditionEnforced is True when every enforcer that should enforce this
	// generation has confirmed it and reaches Redis.
	// Reasons: Enforced, Shadow, Disabled, NoMatchingWorkload, NotInjected,
	// Bypassed, Pending, RedisUnreachable, UnsupportedByEnforcer, or the reason of
	// Accepted or ResolvedRefs where that is not met.
	ConditionEnforced = "Enforced"

	// ConditionReady sums up the others, for waits and for kstatus. Both kinds
	// have it. Reasons on a policy: Enforced, Shadow, Disabled,
	// NoMatchingWorkload, or the reason of the condition that is not met.
	ConditionReady = "Ready"
)

// ConditionEvictionRisk is True on a RedisBackend whose server may evict
// counters (an allkeys or volatile maxmemory-policy).
// Reasons: EvictionPolicy, NoEviction.
const ConditionEvictionRisk = "EvictionRisk"

// Reasons of Accepted.
const (
	ReasonValid   = "Valid"
	ReasonInvalid = "Invalid"
)

// Reasons of ResolvedRefs.
const (
	ReasonResolved            = "Resolved"
	ReasonBackendNotFound     = "BackendNotFound"
	ReasonBackendNotPermitted = "BackendNotPermitted"
	ReasonSecretNotFound      = "SecretNotFound"
	ReasonSecretKeyMissing    = "SecretKeyMissing"
)

// Reasons of Enforced.
const (
	// ReasonEnforced: every enforcer that should has confirmed.
	ReasonEnforced = "Enforced"
	// ReasonShadow: the policy, or the kill switch, asks for Shadow; it is in
	// force but never denies.
	ReasonShadow = "Shadow"
	// ReasonDisabled: the policy asks not to be enforced.
	ReasonDisabled = "Disabled"
	// ReasonNoMatchingWorkload: no ready pod is selected and no door asks.
	ReasonNoMatchingWorkload = "NoMatchingWorkload"
	// ReasonNotInjected: a selected pod runs without a sidecar.
	ReasonNotInjected = "NotInjected"
	// ReasonBypassed: traffic can reach a selected pod around its sidecar.
	ReasonBypassed = "Bypassed"
	// ReasonPending: an enforcer has not confirmed this generation yet.
	ReasonPending = "Pending"
	// ReasonRedisUnreachable: an enforcer cannot reach Redis.
	ReasonRedisUnreachable = "RedisUnreachable"
	// ReasonUnsupportedByEnforcer: an enforcer is too old for this policy.
	ReasonUnsupportedByEnforcer = "UnsupportedByEnforcer"
)

// Reasons of Ready on a RedisBackend, besides those of ResolvedRefs.
const (
	// ReasonConnected: logged in, and the script ran.
	ReasonConnected = "Connected"
	// ReasonUnreachable: no connection, or no answer in time.
	ReasonUnreachable = "Unreachable"
	// ReasonAddressNotPermitted: the address is outside --backend-cidrs.
	ReasonAddressNotPermitted = "AddressNotPermitted"
	// ReasonWrongCredentials: the server refused the user or the password.
	ReasonWrongCredentials = "WrongCredentials"
	// ReasonPermissionMissing: the user lacks a right, named in the message.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonTLSFailed: the TLS handshake failed.
	ReasonTLSFailed = "TLSFailed"
	// ReasonSentinelNoMaster: no Sentinel knows a primary of that name.
	ReasonSentinelNoMaster = "SentinelNoMaster"
	// ReasonSentinelWrongCredentials: the Sentinels refused the user or the
	// password.
	ReasonSentinelWrongCredentials = "SentinelWrongCredentials"
	// ReasonReadOnly: the server is a replica and takes no writes.
	ReasonReadOnly = "ReadOnly"
	// ReasonNotReady: the server starts, or the Cluster does not serve all slots.
	ReasonNotReady = "NotReady"
	// ReasonOutOfMemory: the server takes no more data.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonUnexpectedMode: the server is not of the mode that the spec says.
	ReasonUnexpectedMode = "UnexpectedMode"
)

// Reasons of EvictionRisk.
const (
	ReasonEvictionPolicy = "EvictionPolicy"
	ReasonNoEviction     = "NoEviction"
)
