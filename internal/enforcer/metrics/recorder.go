package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// Outcomes that are no verdicts.
const (
	outcomeExempt  = "exempt"
	outcomeSkipped = "skipped"
)

// outcomes are the values of the label of that name: first the verdicts.
var outcomes = [...]string{
	limiter.Admissions:    "allowed",
	limiter.Denials:       "denied",
	limiter.ShadowDenials: "shadow_denied",
	limiter.Failures:      "error",
	limiter.Failures + 1:  outcomeExempt,
	limiter.Failures + 2:  outcomeSkipped,
}

const verdicts = limiter.Failures + 1

// recorder holds the series of one snapshot. It may outlive their registration:
// decisions that end under an old snapshot are then counted where nobody looks.
type recorder struct {
	*Metrics
	decided   [][verdicts]prometheus.Counter // by Rule.Index
	missing   []prometheus.Counter
	skipped   []prometheus.Counter
	fallbacks []prometheus.Counter
	exempt    []prometheus.Counter // by Policy.Index
	forwarded []prometheus.Counter
	failed    map[*limiter.Backend]map[string]prometheus.Counter // by kind
	lost      map[*limiter.Backend]prometheus.Counter
}

// newRecorder makes the series of the backends, and of the policies that are not
// Disabled.
func (m *Metrics) newRecorder(s *limiter.Snapshot) *recorder {
	set := s.Set
	r := &recorder{
		Metrics:   m,
		decided:   make([][verdicts]prometheus.Counter, len(set.Rules())),
		missing:   make([]prometheus.Counter, len(set.Rules())),
		skipped:   make([]prometheus.Counter, len(set.Rules())),
		fallbacks: make([]prometheus.Counter, len(set.Rules())),
		exempt:    make([]prometheus.Counter, len(set.Policies())),
		forwarded: make([]prometheus.Counter, len(set.Policies())),
		failed:    map[*limiter.Backend]map[string]prometheus.Counter{},
		lost:      map[*limiter.Backend]prometheus.Counter{},
	}
	for _, b := range s.Backends {
		if b != nil && r.failed[b] == nil {
			r.addBackend(b)
		}
	}
	for _, p := range set.Policies() {
		if p.Mode == v1alpha1.ModeDisabled {
			continue
		}
		name := p.Name.String()
		r.exempt[p.Index] = m.decisions.WithLabelValues(name, "", outcomeExempt)
		r.forwarded[p.Index] = m.forwarded.WithLabelValues(name)
		for _, rule := range p.Rules {
			r.missing[rule.Index] = m.missing.WithLabelValues(name, rule.Name)
			r.skipped[rule.Index] = m.decisions.WithLabelValues(name, rule.Name, outcomeSkipped)
			r.fallbacks[rule.Index] = m.fallbacks.WithLabelValues(name, rule.Name)
			for v := range verdicts {
				r.decided[rule.Index][v] = m.decisions.WithLabelValues(name, rule.Name, outcomes[v])
			}
		}
	}
	return r
}

func (r *recorder) addBackend(b *limiter.Backend) {
	kinds := map[string]prometheus.Counter{}
	for _, kind := range limiter.FailureKinds() {
		kinds[kind] = r.failures.WithLabelValues(b.Name.String(), kind)
	}
	r.failed[b] = kinds
	r.lost[b] = r.lostRefunds.WithLabelValues(b.Name.String())
}

// Decided implements limiter.Recorder.
func (r *recorder) Decided(rule *policy.Rule, v limiter.Verdict) { r.decided[rule.Index][v].Inc() }

// Exempt implements limiter.Recorder.
func (r *recorder) Exempt(p *policy.Policy) { r.exempt[p.Index].Inc() }

// Missing implements limiter.Recorder.
func (r *recorder) Missing(rule *policy.Rule) { r.missing[rule.Index].Inc() }

// Skipped implements limiter.Recorder.
func (r *recorder) Skipped(rule *policy.Rule) {
	r.skipped[rule.Index].Inc()
	r.missing[rule.Index].Inc()
}

// ForwardedIgnored implements limiter.Recorder.
func (r *recorder) ForwardedIgnored(p *policy.Policy) { r.forwarded[p.Index].Inc() }

// FellBack implements limiter.Recorder.
func (r *recorder) FellBack(rule *policy.Rule) { r.fallbacks[rule.Index].Inc() }

// Failed implements limiter.Recorder.
func (r *recorder) Failed(b *limiter.Backend, kind string) { r.failed[b][kind].Inc() }

// RefundLost implements limiter.Recorder.
func (r *recorder) RefundLost(b *limiter.Backend) { r.lost[b].Inc() }

// Refused implements limiter.Recorder.
func (r *recorder) Refused(o limiter.Outcome) { r.byOutcome[o].Inc() }
