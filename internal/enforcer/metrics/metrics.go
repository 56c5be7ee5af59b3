// Package metrics shows an enforcer's work to Prometheus.
//
// Labels are names of policies, rules and backends and words of fixed lists; a
// caller's text never is one, so the number of series does not grow with
// callers. Series of policies that are gone go with them.
package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// Metrics are all series of one enforcer. It observes a Limiter.
type Metrics struct {
	decisions   *prometheus.CounterVec
	missing     *prometheus.CounterVec
	exempt      *prometheus.CounterVec
	failures    *prometheus.CounterVec
	calls       *prometheus.HistogramVec
	repairs     *prometheus.CounterVec
	reloads     *prometheus.CounterVec
	forwarded   prometheus.Counter
	enforcing   prometheus.Gauge
	currentSet  atomic.Pointer[series]
	forgettable map[policy.Name]bool
}

// series are the counters of the rules in force, by Rule.Index, so that a
// decision looks up no label.
type series struct {
	set       *policy.Set
	decisions [][limiter.NumRuleOutcomes]prometheus.Counter
	missing   []prometheus.Counter
	exempt    []prometheus.Counter // by Policy.Index
}

// New registers the series with a registry.
func New(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "weir", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		decisions: counter("decisions_total", "Requests that a rule counted, by what came of it.", "policy", "rule", "outcome"),
		missing:   counter("missing_keys_total", "Requests without a part of a rule's key.", "policy", "rule"),
		exempt:    counter("exempt_requests_total", "Requests that a policy left alone.", "policy"),
		failures:  counter("store_failures_total", "Operations that a backend could not carry out, by kind.", "backend", "kind"),
		repairs:   counter("counter_repairs_total", "Counters without expiry that were given one.", "backend"),
		reloads:   counter("policy_reloads_total", "Changes of the policies in force, by result.", "result"),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "weir", Name: "redis_call_duration_seconds", Help: "How long calls of the script took.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
		}, []string{"backend"}),
		forwarded: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "weir", Name: "forwarded_address_ignored_total",
			Help: "Requests with a forwarded address that was not believed, because the peer is not trusted."}),
		enforcing: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "weir", Name: "policies_enforced", Help: "Policies in force."}),
	}
	registry.MustRegister(m.decisions, m.missing, m.exempt, m.failures, m.repairs, m.reloads, m.calls, m.forwarded, m.enforcing)
	m.forgettable = map[policy.Name]bool{}
	m.currentSet.Store(&series{})
	return m
}

// Enforcing makes the series of the policies in force, and drops those of
// policies that are gone.
func (m *Metrics) Enforcing(set *policy.Set) {
	s := &series{set: set}
	present := map[policy.Name]bool{}
	for _, p := range set.Policies() {
		present[p.Name] = true
		s.exempt = append(s.exempt, m.exempt.WithLabelValues(p.Name.String()))
	}
	for _, rule := range set.Rules() {
		name := rule.Policy.Name.String()
		var outcomes [limiter.NumRuleOutcomes]prometheus.Counter
		for i := range outcomes {
			outcomes[i] = m.decisions.WithLabelValues(name, rule.Name, limiter.RuleOutcome(i).String())
		}
		s.decisions = append(s.decisions, outcomes)
		s.missing = append(s.missing, m.missing.WithLabelValues(name, rule.Name))
	}
	for name := range m.forgettable {
		if !present[name] {
			m.forget(name)
		}
	}
	m.forgettable = present
	m.enforcing.Set(float64(len(set.Policies())))
	m.currentSet.Store(s)
}

func (m *Metrics) forget(name policy.Name) {
	label := prometheus.Labels{"policy": name.String()}
	m.decisions.DeletePartialMatch(label)
	m.missing.DeletePartialMatch(label)
	m.exempt.DeletePartialMatch(label)
}

// Decided implements limiter.Observer. A decision by policies that were replaced
// meanwhile is not counted.
func (m *Metrics) Decided(rule *policy.Rule, outcome limiter.RuleOutcome) {
	if s := m.currentSet.Load(); s.holds(rule) {
		s.decisions[rule.Index][outcome].Inc()
	}
}

func (s *series) holds(rule *policy.Rule) bool {
	return s.set != nil && rule.Index < len(s.set.Rules()) && s.set.Rules()[rule.Index] == rule
}

// Exempted implements limiter.Observer.
func (m *Metrics) Exempted(p *policy.Policy) {
	if s := m.currentSet.Load(); p.Index < len(s.exempt) && s.set.Policies()[p.Index] == p {
		s.exempt[p.Index].Inc()
	}
}

// KeyMissing implements limiter.Observer.
func (m *Metrics) KeyMissing(rule *policy.Rule) {
	if s := m.currentSet.Load(); s.holds(rule) {
		s.missing[rule.Index].Inc()
	}
}

// ForwardedIgnored implements limiter.Observer.
func (m *Metrics) ForwardedIgnored() { m.forwarded.Inc() }

// StoreFailed implements limiter.Observer.
func (m *Metrics) StoreFailed(backend *limiter.Backend, err error) {
	m.failures.WithLabelValues(backend.Name.String(), limiter.KindOf(err)).Inc()
}

// Reloaded counts a change of the policies in force; ok tells whether it worked.
func (m *Metrics) Reloaded(ok bool) {
	result := "ok"
	if !ok {
		result = "refused"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// Backend observes the store of one backend.
func (m *Metrics) Backend(name policy.Name) redisstore.Observer {
	return &backend{calls: m.calls.WithLabelValues(name.String()), repairs: m.repairs.WithLabelValues(name.String())}
}

type backend struct {
	calls   prometheus.Observer
	repairs prometheus.Counter
}

func (b *backend) Called(took time.Duration, _ error) { b.calls.Observe(took.Seconds()) }
func (b *backend) Repaired(counters int64)            { b.repairs.Add(float64(counters)) }
