package limiter

import "github.com/weir-dev/weir/internal/policy"

// Observer watches a Limiter; metrics is the one there is.
type Observer interface {
	// Observe is told of a Snapshot before it is in force, and returns who is told
	// about its decisions. What belongs to rules that are gone can be dropped.
	Observe(s *Snapshot) Recorder
}

// Recorder is told about the decisions under one Snapshot. It is called on the
// path of every request, from many goroutines. It never hears anything that a
// caller sent.
type Recorder interface {
	// Decided tells what one rule made of a request.
	Decided(rule *policy.Rule, v Verdict)
	// Exempt tells that a policy left a request alone.
	Exempt(p *policy.Policy)
	// Missing tells that a part of a rule's key was not there, and that the request
	// was counted or refused all the same.
	Missing(rule *policy.Rule)
	// Skipped tells that a rule did not count a request, because a part of its key
	// was not there and its onMissing is Skip.
	Skipped(rule *policy.Rule)
	// ForwardedIgnored tells that a policy does not trust the peer that sent a
	// forwarded address.
	ForwardedIgnored(p *policy.Policy)
	// Failed tells that a backend did not carry out an operation. kind is one of
	// FailureKinds.
	Failed(b *Backend, kind string)
	// FellBack tells that a rule was decided in this process's memory.
	FellBack(rule *policy.Rule)
	// RefundLost tells that something charged could not be given back: a counter
	// shows more than was let through.
	RefundLost(b *Backend)
	// Refused tells that a request was refused. Each is refused once.
	Refused(o Outcome)
}

// Verdict is what one rule made of a request.
type Verdict uint8

// The verdicts. A rule has none on a request that only others refused: it was not
// charged.
const (
	// Admissions were charged and let through.
	Admissions Verdict = iota
	// Denials were refused by the rule.
	Denials
	// ShadowDenials would have been refused, were the policy enforced.
	ShadowDenials
	// Failures could not be decided by the policy's store.
	Failures
)

type noObserver struct{}

func (noObserver) Observe(*Snapshot) Recorder { return noRecorder{} }

type noRecorder struct{}

func (noRecorder) Decided(*policy.Rule, Verdict)   {}
func (noRecorder) Exempt(*policy.Policy)           {}
func (noRecorder) Missing(*policy.Rule)            {}
func (noRecorder) Skipped(*policy.Rule)            {}
func (noRecorder) ForwardedIgnored(*policy.Policy) {}
func (noRecorder) Failed(*Backend, string)         {}
func (noRecorder) FellBack(*policy.Rule)           {}
func (noRecorder) RefundLost(*Backend)             {}
func (noRecorder) Refused(Outcome)                 {}
