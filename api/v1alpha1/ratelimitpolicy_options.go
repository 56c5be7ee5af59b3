package v1alpha1

// RequestOptions says how requests are read before they are matched.
type RequestOptions struct {
	// PathCase is Sensitive or Insensitive. Absent means Sensitive.
	// +optional
	PathCase PathCase `json:"pathCase,omitempty"`

	// TrailingSlash is Ignore (/a and /a/ are one path) or Strict. Absent means
	// Ignore.
	// +optional
	TrailingSlash TrailingSlash `json:"trailingSlash,omitempty"`

	// Preflight says what happens to CORS preflights (OPTIONS with Origin and
	// Access-Control-Request-Method): Exempt or Count. Absent means Exempt.
	// +optional
	Preflight Preflight `json:"preflight,omitempty"`
}

// PathCase says whether letters' case matters in paths.
// +kubebuilder:validation:Enum=Sensitive;Insensitive
type PathCase string

// The ways to compare paths.
const (
	PathCaseSensitive   PathCase = "Sensitive"
	PathCaseInsensitive PathCase = "Insensitive"
)

// TrailingSlash says whether a slash at the end of a path matters.
// +kubebuilder:validation:Enum=Ignore;Strict
type TrailingSlash string

// The ways to treat a slash at the end of a path.
const (
	TrailingSlashIgnore TrailingSlash = "Ignore"
	TrailingSlashStrict TrailingSlash = "Strict"
)

// Preflight says whether CORS preflights are counted.
// +kubebuilder:validation:Enum=Exempt;Count
type Preflight string

// The ways to treat CORS preflights.
const (
	PreflightExempt Preflight = "Exempt"
	PreflightCount  Preflight = "Count"
)

// ResponseOptions says what answers tell the caller.
type ResponseOptions struct {
	// Headers are the families of quota headers on answers: Standard is
	// RateLimit and RateLimit-Policy of the IETF draft, Legacy is
	// X-RateLimit-Limit, -Remaining and -Reset. An empty list turns them off;
	// Retry-After is always sent with a denial. Absent means both.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Headers []HeaderFamily `json:"headers,omitzero"`

	// Detail is Full or Minimal; Minimal keeps the names of policies and rules
	// out of answers. Absent means Full.
	// +optional
	Detail Detail `json:"detail,omitempty"`

	// CORS lets scripts in browsers read denials and quota headers.
	// +optional
	CORS *CORS `json:"cors,omitempty"`
}

// HeaderFamily is a set of response headers that tell a caller's quota.
// +kubebuilder:validation:Enum=Standard;Legacy
type HeaderFamily string

// The families of quota headers.
const (
	HeadersStandard HeaderFamily = "Standard"
	HeadersLegacy   HeaderFamily = "Legacy"
)

// Detail says how much an answer tells about the policy behind it.
// +kubebuilder:validation:Enum=Full;Minimal
type Detail string

// The levels of detail.
const (
	DetailFull    Detail = "Full"
	DetailMinimal Detail = "Minimal"
)

// CORS is what a denial needs so that a browser hands it to the script.
type CORS struct {
	// AllowOrigins are the origins that may read denials, each as a browser
	// sends it (https://shop.example.com), or "*" for all.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	AllowOrigins []Origin `json:"allowOrigins"`
}

// Origin is a web origin (RFC 6454), or "*".
// +kubebuilder:validation:MaxLength=260
// +kubebuilder:validation:Pattern=`^(\*|[a-z][a-z0-9+.-]*://[a-z0-9._\[\]:-]+)$`
type Origin string
