package v1alpha1

// MaxLimit is the highest limit that a rule can have, 2^53−1: numbers up to it
// are exact in Lua, JSON and JavaScript alike.
const MaxLimit = 1<<53 - 1

// Rule is one limit: which requests it counts, who is counted, and how many are
// allowed per window.
type Rule struct {
	// Name of the rule. It stands in counters' keys, headers and metrics.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'override'",message="the name override is reserved for limits that come with a request; choose another name"
	Name string `json:"name"`

	// Match says which requests the rule counts. All fields must hold. Absent
	// means every request.
	// +optional
	Match *Match `json:"match,omitempty"`

	// Limit is how many requests are allowed per window and key. 0 blocks them
	// all. For no limit, leave the rule out.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Limit *int64 `json:"limit"`

	// Window is a whole number with a unit, s, m, h or d, from 1s to 366d, for
	// example 1m. Windows are aligned to the epoch in UTC.
	// +required
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,7}(s|m|h|d)$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[1-9][0-9]{0,7}(s|m|h|d)$') || int(self.substring(0, self.size() - 1)) * (self.endsWith('s') ? 1 : self.endsWith('m') ? 60 : self.endsWith('h') ? 3600 : 86400) <= 31622400",message="a window is at most 366d"
	Window string `json:"window"`

	// Key says who is counted: the parts together name one counter. Absent means
	// that all callers share one counter.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Key []KeyPart `json:"key,omitempty"`

	// Algorithm counts the requests. Absent means FixedWindow.
	// +optional
	Algorithm Algorithm `json:"algorithm,omitempty"`
}

// Algorithm is a way to count.
// +kubebuilder:validation:Enum=FixedWindow
type Algorithm string

// The ways to count.
const (
	// AlgorithmFixedWindow counts per window; a caller can send up to twice the
	// limit around the turn of a window, never more than the limit within one.
	AlgorithmFixedWindow Algorithm = "FixedWindow"
)

// Exemption is a kind of request that a policy leaves alone.
//
// +kubebuilder:validation:XValidation:rule="(has(self.match.hosts) && self.match.hosts.size() > 0) || (has(self.match.methods) && self.match.methods.size() > 0) || (has(self.match.paths) && self.match.paths.size() > 0) || (has(self.match.headers) && self.match.headers.size() > 0) || (has(self.match.clientCIDRs) && self.match.clientCIDRs.size() > 0) || (has(self.match.descriptor) && self.match.descriptor.size() > 0)",message="say which requests are exempt; to exempt all, set mode: Disabled"
type Exemption struct {
	// Name of the exemption. It stands in metrics.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// Match says which requests are exempt. All fields must hold, and at least
	// one must be set: to exempt everything, set mode: Disabled.
	// +required
	Match Match `json:"match"`
}

// Match picks requests. All of its fields must hold; an absent field holds for
// every request.
type Match struct {
	// Hosts are host names, any of which must equal the request's, or wildcards
	// such as *.example.com, which stand for one or more labels. Lower case,
	// without port.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$|^\[[0-9a-f:.]+\]$`
	Hosts []string `json:"hosts,omitempty"`

	// Methods are request methods, any of which must equal the request's. Case
	// matters (RFC 9110).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z][A-Za-z0-9_-]*$`
	Methods []string `json:"methods,omitempty"`

	// Paths are path matchers, any of which must hold for the cleaned path.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Paths []PathMatch `json:"paths,omitempty"`

	// Headers are header matchers, all of which must hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Headers []HeaderMatch `json:"headers,omitempty"`

	// ClientCIDRs are ranges, any of which must hold the caller's address.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ClientCIDRs []AddressRange `json:"clientCIDRs,omitempty"`

	// Descriptor is for Envoy's rate limit service: the rule then applies to
	// descriptors with exactly these entries in this order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Descriptor []DescriptorMatch `json:"descriptor,omitempty"`
}

// PathMatch holds for some paths. Before it is compared, a request's path is
// decoded once, dot segments, double slashes and path parameters are folded.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || (self.value.startsWith('/') && !self.value.contains('?') && !self.value.contains('#'))",message="a path starts with / and has neither query nor fragment"
// +kubebuilder:validation:XValidation:rule="self.type != 'RegularExpression' || self.value.size() <= 256",message="a regular expression is at most 256 characters long"
// +kubebuilder:validation:XValidation:rule="self.type != 'RegularExpression' || self.value.size() > 256 || (('x'.matches(self.value) ? true : true) && ('x'.matches('^(?:' + self.value + ')$') ? true : true))",message="write a regular expression in RE2 syntax"
type PathMatch struct {
	// Type is Exact, Prefix (whole segments: /api holds for /api and /api/x, not
	// for /apis) or RegularExpression (RE2, anchored at both ends).
	// +required
	Type PathMatchType `json:"type"`

	// Value is the path, the prefix or the regular expression.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// PathMatchType is a way to compare a path.
// +kubebuilder:validation:Enum=Exact;Prefix;RegularExpression
type PathMatchType string

// The ways to compare a path.
const (
	PathMatchExact             PathMatchType = "Exact"
	PathMatchPrefix            PathMatchType = "Prefix"
	PathMatchRegularExpression PathMatchType = "RegularExpression"
)

// HeaderMatch holds for some values of a header. A header that is sent several
// times holds if any of its values does.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Exact' || self.type == 'RegularExpression') == has(self.value)",message="value goes with type Exact and RegularExpression, and only with them"
// +kubebuilder:validation:XValidation:rule="self.type != 'RegularExpression' || !has(self.value) || self.value.size() <= 256",message="a regular expression is at most 256 characters long"
// +kubebuilder:validation:XValidation:rule="self.type != 'RegularExpression' || !has(self.value) || self.value.size() > 256 || (('x'.matches(self.value) ? true : true) && ('x'.matches('^(?:' + self.value + ')$') ? true : true))",message="write a regular expression in RE2 syntax"
type HeaderMatch struct {
	// Name of the header. Case does not matter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`
	Name string `json:"name"`

	// Type is Exact, Present, Absent or RegularExpression (RE2, anchored at both
	// ends).
	// +required
	Type HeaderMatchType `json:"type"`

	// Value to compare with, for Exact and RegularExpression.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`
}

// HeaderMatchType is a way to compare a header.
// +kubebuilder:validation:Enum=Exact;Present;Absent;RegularExpression
type HeaderMatchType string

// The ways to compare a header.
const (
	HeaderMatchExact             HeaderMatchType = "Exact"
	HeaderMatchPresent           HeaderMatchType = "Present"
	HeaderMatchAbsent            HeaderMatchType = "Absent"
	HeaderMatchRegularExpression HeaderMatchType = "RegularExpression"
)

// DescriptorMatch holds for one entry of a descriptor of Envoy's rate limit
// service.
type DescriptorMatch struct {
	// Key of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Key string `json:"key"`

	// Value of the entry. Absent holds for any.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Value *string `json:"value,omitempty"`
}

// KeyPart is one part of what names a counter.
//
// +kubebuilder:validation:XValidation:rule="(self.type in ['Header', 'Cookie', 'QueryParam', 'Descriptor']) == has(self.name)",message="name goes with type Header, Cookie, QueryParam and Descriptor, and only with them"
// +kubebuilder:validation:XValidation:rule="(self.type == 'PathSegment') == has(self.index)",message="index goes with type PathSegment, and only with it"
// +kubebuilder:validation:XValidation:rule="!has(self.onMissing) || self.type in ['Header', 'Cookie', 'QueryParam', 'PathSegment', 'Descriptor']",message="onMissing goes with type Header, Cookie, QueryParam, PathSegment and Descriptor; the other parts are never missing"
// +kubebuilder:validation:XValidation:rule="!has(self.trustedFrom) || self.type == 'Header'",message="trustedFrom goes with type Header only"
// +kubebuilder:validation:XValidation:rule="self.type != 'Header' || !has(self.name) || self.name.matches('^[A-Za-z0-9!#$%&\\'*+.^_|~-]+$')",message="a header's name holds only letters, digits and !#$%&'*+.^_|~-"
// +kubebuilder:validation:XValidation:rule="self.type != 'Cookie' || !has(self.name) || self.name.matches('^[A-Za-z0-9!#$%&\\'*+.^_|~-]+$')",message="a cookie's name holds only letters, digits and !#$%&'*+.^_|~-"
type KeyPart struct {
	// Type says where the part comes from.
	// +required
	Type KeyPartType `json:"type"`

	// Name of the header (case does not matter), the cookie, the query parameter
	// or the descriptor entry (case matters).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// Index of the path segment, 0 for the first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31
	Index *int32 `json:"index,omitempty"`

	// OnMissing says who is counted when the part is not there. A part that is
	// empty, blank or sent more than once is not there. ClientIP takes the
	// caller's address, so that leaving a header out is no way round; Skip leaves
	// the rule out; Deny refuses the request; Shared counts all such callers
	// together. Absent means ClientIP.
	// +optional
	OnMissing OnMissing `json:"onMissing,omitempty"`

	// TrustedFrom: Proxies reads the header only when the connection comes from
	// one of clientAddress's trusted proxies; from anyone else it is missing.
	// +optional
	TrustedFrom TrustedFrom `json:"trustedFrom,omitempty"`

	// Hash stores a digest instead of the value. Values over 64 bytes, and those
	// of headers and parameters that usually carry secrets (Authorization,
	// Cookie, *-Api-Key, *-Token; api_key, key, token, access_token), are always
	// hashed.
	// +optional
	Hash bool `json:"hash,omitempty"`
}

// KeyPartType is a source of a key part.
// +kubebuilder:validation:Enum=ClientIP;Header;Cookie;QueryParam;PathSegment;Path;Host;Method;Descriptor
type KeyPartType string

// The sources of key parts.
const (
	KeyClientIP    KeyPartType = "ClientIP"
	KeyHeader      KeyPartType = "Header"
	KeyCookie      KeyPartType = "Cookie"
	KeyQueryParam  KeyPartType = "QueryParam"
	KeyPathSegment KeyPartType = "PathSegment"
	KeyPath        KeyPartType = "Path"
	KeyHost        KeyPartType = "Host"
	KeyMethod      KeyPartType = "Method"
	KeyDescriptor  KeyPartType = "Descriptor"
)

// OnMissing says who is counted when a key part is not there.
// +kubebuilder:validation:Enum=ClientIP;Skip;Deny;Shared
type OnMissing string

// The ways to go on without a key part.
const (
	OnMissingClientIP OnMissing = "ClientIP"
	OnMissingSkip     OnMissing = "Skip"
	OnMissingDeny     OnMissing = "Deny"
	OnMissingShared   OnMissing = "Shared"
)

// TrustedFrom says from whom a header is believed.
// +kubebuilder:validation:Enum=Anyone;Proxies
type TrustedFrom string

// The senders from whom a header is believed.
const (
	TrustedFromAnyone  TrustedFrom = "Anyone"
	TrustedFromProxies TrustedFrom = "Proxies"
)
