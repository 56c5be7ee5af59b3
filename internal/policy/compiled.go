package policy

import (
	"strconv"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Defaults are what a spec's absent fields mean here, and what comes from the
// policy's backend.
type Defaults struct {
	// KeyPrefix starts every key. Defaults to "rl".
	KeyPrefix string
	// HashKey turns the digests in keys from SHA-256 into HMAC-SHA-256. Defaults
	// to none.
	HashKey []byte
	// ClientAddress is what a policy without clientAddress uses. Defaults to
	// trusting nobody.
	ClientAddress *v1alpha1.ClientAddress
}

// Name is the namespace and name of a policy or a backend.
type Name struct {
	Namespace, Name string
}

// String returns namespace/name.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Policy is one compiled policy. It never changes.
type Policy struct {
	Name        Name
	Domain      string
	Mode        v1alpha1.Mode
	FailureMode v1alpha1.FailureMode
	Response    Response
	Rules       []*Rule
	// Index of the policy in its Set: 0..len(Set.Policies())-1.
	Index int

	compiled compiledPolicy
}

// Response is what answers tell the caller.
type Response struct {
	Standard, Legacy bool     // families of quota headers
	Minimal          bool     // hide the names of policies and rules
	AllowOrigins     []string // CORS; empty means no CORS headers
}

// Rule is one compiled rule. It never changes.
type Rule struct {
	Policy *Policy
	Name   string
	// Limit is 0..2^53−1 requests per window.
	Limit int64
	// Window is in seconds, 1..366 days.
	Window int64
	// Index of the rule in its Set: 0..Set.Len()-1. Metrics and scratch space
	// are indexed by it.
	Index int

	compiled compiledRule
}

// Match is one rule that counts a request.
type Match struct {
	Rule *Rule
	// Key is the counter's key up to and without the window number,
	// <prefix>:{<client>}:<namespace>/<policy>/<rule>:<window>: — a store
	// appends the number.
	Key string
	// Missing tells that a key part was not there and onMissing applied.
	Missing bool
	// Descriptor is the index of the descriptor that the rule met, −1 where the
	// request itself was matched.
	Descriptor int
	// Deny tells that the request is refused because a key part was not there
	// and onMissing is Deny; Key is empty then.
	Deny bool
}

// Counter is the counter's whole key in the window of that number, which is the
// Unix time divided by Rule.Window.
func (m *Match) Counter(number int64) string { return m.Key + strconv.FormatInt(number, 10) }
