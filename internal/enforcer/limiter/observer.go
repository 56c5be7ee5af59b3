package limiter

import "github.com/weir-dev/weir/internal/policy"

// RuleOutcome is what came of one rule for one request.
type RuleOutcome uint8

// The outcomes of a rule.
const (
	OutcomeAllowed RuleOutcome = iota
	OutcomeDenied
	OutcomeShadowDenied
	OutcomeError
	OutcomeKeyMissing
	numOutcomes
)

// NumRuleOutcomes is how many outcomes there are.
const NumRuleOutcomes = int(numOutcomes)

// String is the value of a metric's label.
func (o RuleOutcome) String() string {
	return [...]string{"allowed", "denied", "shadow_denied", "error", "key_missing"}[o]
}

// Observer learns what a Limiter decides. Its methods are called for every
// request, so they must be cheap, and at the same time, so they must be safe.
type Observer interface {
	// Enforcing is told of the policies that come into force.
	Enforcing(set *policy.Set)
	// Decided is told what came of a rule that counted a request.
	Decided(rule *policy.Rule, outcome RuleOutcome)
	// Exempted is told of a policy that left a request alone.
	Exempted(p *policy.Policy)
	// KeyMissing is told of a rule with a key part that was not there.
	KeyMissing(rule *policy.Rule)
	// ForwardedIgnored is told that a forwarded address was not believed.
	ForwardedIgnored()
	// StoreFailed is told of an operation that a store could not carry out.
	StoreFailed(backend *Backend, err error)
}

type nobody struct{}

func (nobody) Enforcing(*policy.Set)             {}
func (nobody) Decided(*policy.Rule, RuleOutcome) {}
func (nobody) Exempted(*policy.Policy)           {}
func (nobody) KeyMissing(*policy.Rule)           {}
func (nobody) ForwardedIgnored()                 {}
func (nobody) StoreFailed(*Backend, error)       {}
