package limiter

import (
	"context"
	"time"

	"github.com/weir-dev/weir/internal/policy"
)

// Decider decides requests; Limiter is the one there is. Doors depend on this.
type Decider interface {
	// Decide fills in d. Reuse d for requests one after the other.
	Decide(ctx context.Context, req *policy.Request, d *Decision)
}

// Outcome is what a door answers.
type Outcome uint8

// The outcomes.
const (
	// Allowed: go on to the application.
	Allowed Outcome = iota
	// Unavailable: a store could not answer and a policy says Deny (503).
	Unavailable
	// KeyMissing: a key part is missing and its onMissing is Deny (403). Nothing
	// was counted.
	KeyMissing
	// Denied: an enforced rule is over (429).
	Denied
)

// Decision is what came out for one request.
type Decision struct {
	Outcome Outcome
	// Quotas are the rules that were decided, whose quota the caller may see, in
	// Rule.Index order. Rules that failed and rules of Shadow policies are not
	// among them.
	Quotas []Quota
	// Cause is the rule behind an outcome other than Allowed: the one that
	// denied (with the longest wait, if several), that failed, or whose key is
	// missing.
	Cause *policy.Rule
	// RetryAfter is how long to wait, in whole seconds ≥ 1, unless Allowed.
	RetryAfter int64

	matcher policy.Matcher
	groups  []group
	batch   [1]*Op
}

// Quota is one rule's state after the decision.
type Quota struct {
	Rule *policy.Rule
	// Remaining is how much may still be admitted, ≥ 0.
	Remaining int64
	// Reset is the window's end in Unix seconds by the store's clock.
	Reset int64
	// Wait is the time until Reset in whole seconds, rounded up, ≥ 1.
	Wait int64
	// Over tells that this rule denied the request.
	Over bool
}

// Reset drops all that refers to a request, for a Decision that is put aside.
func (d *Decision) Reset() {
	clear(d.Quotas)
	d.Outcome, d.Quotas, d.Cause, d.RetryAfter = Allowed, d.Quotas[:0], nil, 0
	d.matcher.Reset()
	for i := range d.groups {
		d.groups[i].reset()
	}
	d.groups = d.groups[:0]
}

// group is what one backend decides of a request.
type group struct {
	backend *Backend
	op      Op
	rules   []*policy.Rule // by check
	// failed is set where the store could not answer and failureMode applies.
	failed error
}

func (g *group) reset() {
	clear(g.op.Checks)
	clear(g.rules)
	g.backend, g.failed = nil, nil
	g.op = Op{Checks: g.op.Checks[:0]}
	g.rules = g.rules[:0]
}

// Backend is where a policy's counters are.
type Backend struct {
	Name  policy.Name
	Store Store
	// Budget is how long one decision may take.
	Budget time.Duration
}

// Snapshot is what a Limiter enforces at one moment. It never changes.
type Snapshot struct {
	Set *policy.Set
	// Backends by Policy.Index. Policies with an equal pointer share a Store.
	Backends []*Backend
}
