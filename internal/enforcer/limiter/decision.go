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

// The outcomes, in the order of their weight: where several hold, the last does.
const (
	// Allowed: go on to the application.
	Allowed Outcome = iota
	// Unavailable: a store could not answer and a policy says Deny (503).
	Unavailable
	// Denied: an enforced rule is over (429).
	Denied
	// KeyMissing: a key part is missing and its onMissing is Deny (403). Nothing
	// was charged.
	KeyMissing
)

// Decision is what came out for one request. The zero value is ready for use.
type Decision struct {
	Outcome Outcome
	// Quotas are the rules that were decided, whose quota the caller may see, in
	// Rule.Index order. Rules that failed and rules of Shadow policies are not
	// among them; without Allowed or Denied there are none.
	Quotas []Quota
	// Cause is the rule behind an outcome other than Allowed: the one that denied
	// (with the longest wait, if several), that failed, or whose key is missing.
	Cause *policy.Rule
	// RetryAfter is how long to wait, in whole seconds ≥ 1, where Denied or
	// Unavailable. It is 0 otherwise: waiting does not mend a missing key.
	RetryAfter int64

	matcher policy.Matcher
	calls   []call
	failed  *policy.Rule // whose store failed, and whose policy denies then
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

// maxKeptCalls and maxKeptChecks bound the scratch space that a Decision keeps.
const (
	maxKeptCalls  = 8
	maxKeptChecks = 64
)

// Reset drops all that refers to a request, for a Decision that is put aside.
func (d *Decision) Reset() {
	d.begin()
	d.matcher.Reset()
	clear(d.Quotas[:cap(d.Quotas)])
	calls := d.calls[:cap(d.calls)]
	if len(calls) > maxKeptCalls || cap(d.Quotas) > maxKeptChecks {
		d.calls, d.Quotas = nil, nil
		return
	}
	for i := range calls {
		calls[i].reset()
	}
}

// begin clears the results of the request before.
func (d *Decision) begin() {
	d.Outcome, d.Quotas, d.Cause, d.RetryAfter = Allowed, d.Quotas[:0], nil, 0
	d.calls, d.failed = d.calls[:0], nil
}

// Backend is where a policy's counters are.
type Backend struct {
	Name  policy.Name
	Store Store
	// Budget is how long one decision may take.
	Budget time.Duration
	// Sharded tells that only counters whose keys have the same part in braces can
	// be decided together: the store is many servers.
	Sharded bool
}

// Snapshot is what a Limiter enforces at one moment. It never changes.
type Snapshot struct {
	Set *policy.Set
	// Backends by Policy.Index, one for each policy that is not Disabled.
	// Policies with an equal pointer share a Store.
	Backends []*Backend
}
