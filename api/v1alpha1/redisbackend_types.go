package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RedisBackend says where counters live and how enforcers log in there.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=redisbackends,singular=redisbackend,categories=weir
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.spec.addresses`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,priority=1
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.status.role`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RedisBackend struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec says where the Redis is. Weir never changes it.
	// +required
	Spec RedisBackendSpec `json:"spec"`

	// Status says what the last check of the Redis found.
	// +optional
	Status RedisBackendStatus `json:"status,omitzero"`
}

// RedisBackendList is a list of RedisBackend.
//
// +kubebuilder:object:root=true
type RedisBackendList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RedisBackend `json:"items"`
}

// RedisBackendSpec says where the Redis is and how to log in.
//
// +kubebuilder:validation:XValidation:rule="(self.mode == 'Sentinel') == has(self.sentinel)",message="sentinel goes with mode Sentinel, and only with it"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Cluster' || !has(self.database)",message="a Redis Cluster has one database: leave database out"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Standalone' || self.addresses.size() == 1",message="mode Standalone takes one address; for several use Sentinel or Cluster"
type RedisBackendSpec struct {
	// Mode is Standalone (one server, or one address that always leads to the
	// primary), Sentinel or Cluster.
	// +required
	Mode RedisMode `json:"mode"`

	// Addresses are host:port of the server, of the Sentinels, or of some nodes
	// of the Cluster.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Addresses []RedisAddress `json:"addresses"`

	// Database is the number of the logical database. Absent means 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	Database *int32 `json:"database,omitempty"`

	// Sentinel says which primary to ask for.
	// +optional
	Sentinel *Sentinel `json:"sentinel,omitempty"`

	// CredentialsSecretRef names a Secret of this namespace with the keys
	// username (optional) and password.
	// +optional
	CredentialsSecretRef *LocalRef `json:"credentialsSecretRef,omitempty"`

	// NamespaceCredentials give a namespace's enforcers a Redis user of their
	// own, so that its counters are out of other namespaces' reach.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=64
	NamespaceCredentials []NamespaceCredentials `json:"namespaceCredentials,omitempty"`

	// HashKeySecretRef names a Secret of this namespace with the key `key`:
	// hashed key parts are then HMAC-SHA-256 under it instead of plain SHA-256,
	// so that short values can't be found by trying. Changing it restarts the
	// counters of hashed callers.
	// +optional
	HashKeySecretRef *LocalRef `json:"hashKeySecretRef,omitempty"`

	// TLS turns on TLS. tls: {} uses the system's certificate authorities.
	// +optional
	TLS *RedisTLS `json:"tls,omitempty"`

	// KeyPrefix starts every key, so that several clusters can share a Redis.
	// Absent means rl.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]{1,32}$`
	KeyPrefix string `json:"keyPrefix,omitempty"`

	// Timeouts bound how long a request can wait for Redis.
	// +optional
	Timeouts *RedisTimeouts `json:"timeouts,omitempty"`

	// PoolSize is how many connections an enforcer opens per Redis node at most.
	// Absent means 16.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	PoolSize *int32 `json:"poolSize,omitempty"`

	// AllowedNamespaces says which namespaces' policies may use this backend.
	// Their enforcers are then trusted with this Redis's credentials. Absent
	// means this namespace only.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// RedisMode is how the Redis is run.
// +kubebuilder:validation:Enum=Standalone;Sentinel;Cluster
type RedisMode string

// The ways a Redis is run.
const (
	RedisStandalone RedisMode = "Standalone"
	RedisSentinel   RedisMode = "Sentinel"
	RedisCluster    RedisMode = "Cluster"
)

// RedisAddress is host:port; an IPv6 address stands in brackets.
// +kubebuilder:validation:MaxLength=260
// +kubebuilder:validation:Pattern=`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):[1-9][0-9]{0,4}$`
// +kubebuilder:validation:XValidation:rule="!self.matches(':[0-9]{1,5}$') || int(self.substring(self.lastIndexOf(':') + 1)) <= 65535",message="a port is at most 65535"
type RedisAddress string

// Sentinel says which primary to ask the Sentinels for.
type Sentinel struct {
	// MasterName is the name under which the Sentinels watch the primary.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	MasterName string `json:"masterName"`

	// CredentialsSecretRef names a Secret with the Sentinels' own username
	// (optional) and password. Absent means that the Sentinels ask for none.
	// +optional
	CredentialsSecretRef *LocalRef `json:"credentialsSecretRef,omitempty"`
}

// LocalRef names an object of the same namespace.
type LocalRef struct {
	// Name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// NamespaceCredentials is the Redis user of one namespace.
type NamespaceCredentials struct {
	// Namespace whose enforcers log in with it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// SecretRef names a Secret of the backend's namespace with the keys username
	// and password.
	// +required
	SecretRef LocalRef `json:"secretRef"`
}

// RedisTLS says how the server proves who it is, and how the enforcer does.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.caSecretRef) && has(self.caConfigMapRef))",message="set at most one of caSecretRef and caConfigMapRef"
type RedisTLS struct {
	// CASecretRef names a Secret whose ca.crt holds the certificate authorities.
	// +optional
	CASecretRef *LocalRef `json:"caSecretRef,omitempty"`

	// CAConfigMapRef names a ConfigMap whose ca.crt holds the certificate
	// authorities.
	// +optional
	CAConfigMapRef *LocalRef `json:"caConfigMapRef,omitempty"`

	// CertSecretRef names a Secret with tls.crt and tls.key, the enforcer's own
	// certificate.
	// +optional
	CertSecretRef *LocalRef `json:"certSecretRef,omitempty"`

	// ServerName is the name that the server's certificate must hold. Absent
	// means the host of the address that was dialled.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:-]+$`
	ServerName string `json:"serverName,omitempty"`
}

// RedisTimeouts bound how long a request can wait for Redis.
type RedisTimeouts struct {
	// Dial is how long a new connection may take, from 10ms to 30s. Absent means
	// 1s.
	// +optional
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,4}(ms|s)$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[1-9][0-9]{0,4}(ms|s)$') || (duration(self) >= duration('10ms') && duration(self) <= duration('30s'))",message="dial is from 10ms to 30s"
	Dial string `json:"dial,omitempty"`

	// Decision is how long one decision may wait for Redis before failureMode
	// applies, from 1ms to 5s. Absent means 50ms.
	// +optional
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,4}(ms|s)$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[1-9][0-9]{0,4}(ms|s)$') || (duration(self) >= duration('1ms') && duration(self) <= duration('5s'))",message="decision is from 1ms to 5s"
	Decision string `json:"decision,omitempty"`
}

// AllowedNamespaces says who may use a backend.
//
// +kubebuilder:validation:XValidation:rule="(self.from == 'Selector') == has(self.selector)",message="selector goes with from: Selector, and only with it"
type AllowedNamespaces struct {
	// From is Same (the backend's own namespace), All or Selector.
	// +required
	From NamespacesFrom `json:"from"`

	// Selector picks namespaces by their labels.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchExpressions) ? self.matchExpressions.all(e, e.key.size() > 0 && (e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : (e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0)))) : true",message="in matchExpressions each has a key; the operators In and NotIn take values, Exists and DoesNotExist take none, and there are no others"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// NamespacesFrom is a way to pick namespaces.
// +kubebuilder:validation:Enum=Same;All;Selector
type NamespacesFrom string

// The ways to pick namespaces.
const (
	NamespacesFromSame     NamespacesFrom = "Same"
	NamespacesFromAll      NamespacesFrom = "All"
	NamespacesFromSelector NamespacesFrom = "Selector"
)
