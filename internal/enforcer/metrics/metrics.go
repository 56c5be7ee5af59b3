package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// Metrics are all series of one enforcer. It observes a Limiter, and
// hands out observers of stores and of a proxy.
type Metrics struct {
	decisions    *prometheus.CounterVec
	missing      *prometheus.CounterVec
	fallbacks    *prometheus.CounterVec
	forwarded    *prometheus.CounterVec
	refused      *prometheus.CounterVec
	failures     *prometheus.CounterVec
	lostRefunds  *prometheus.CounterVec
	calls        *prometheus.HistogramVec
	repairs      *prometheus.CounterVec
	reloads      *prometheus.CounterVec
	proxied      *prometheus.CounterVec
	inFlight     prometheus.Gauge
	policies     prometheus.Gauge
	byOutcome    [limiter.KeyMissing + 1]prometheus.Counter
	reloadResult map[bool]prometheus.Counter

	mu       sync.Mutex
	rules    map[ruleLabels]bool // that have series
	backends map[string]bool
}

// ruleLabels tell rules apart. A policy's own series have an empty rule.
type ruleLabels struct{ policy, rule string }

var _ limiter.Observer = (*Metrics)(nil)

// New registers the series with a registry.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions:   counter("decisions_total", "Requests by what a rule made of them. A request that only other rules refused was not charged, and counts for those alone. A rule skips a request without a part of its key if its onMissing is Skip. An exemption holds for a whole policy: its rule is empty.", "policy", "rule", "outcome"),
		missing:     counter("missing_keys_total", "Requests without a part of a rule's key, to which onMissing applied.", "policy", "rule"),
		fallbacks:   counter("fallback_decisions_total", "Requests that a rule counted in this process's memory, because the policy's store could not answer.", "policy", "rule"),
		forwarded:   counter("forwarded_address_ignored_total", "Requests with a forwarded address that a policy ignored, because it does not trust the peer.", "policy"),
		refused:     counter("refused_requests_total", "Requests refused, each once, by reason.", "reason"),
		failures:    counter("store_failures_total", "Operations that a backend did not carry out, by kind.", "backend", "kind"),
		lostRefunds: counter("lost_refunds_total", "Refused requests whose charge could not be given back: counters show more than was let through.", "backend"),
		repairs:     counter("counter_repairs_total", "Counters without expiry that were given one.", "backend"),
		reloads:     counter("policy_reloads_total", "Changes of the policies in force, by result.", "result"),
		proxied:     counter("proxy_failures_total", "Requests that the application did not answer, by kind.", "kind"),
		inFlight:    gauge("proxy_requests_in_flight", "Requests that the proxy is working on."),
		policies:    gauge("policies", "Policies in force."),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "weir", Name: "redis_call_duration_seconds", Help: "How long calls of the script took.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
		}, []string{"backend"}),
		rules:    map[ruleLabels]bool{},
		backends: map[string]bool{},
	}
	registry.MustRegister(m.decisions, m.missing, m.fallbacks, m.forwarded, m.refused, m.failures, m.lostRefunds, m.repairs, m.reloads, m.calls, m.proxied, m.inFlight, m.policies)
	m.byOutcome[limiter.Denied] = m.refused.WithLabelValues("over_limit")
	m.byOutcome[limiter.Unavailable] = m.refused.WithLabelValues("store_unavailable")
	m.byOutcome[limiter.KeyMissing] = m.refused.WithLabelValues("key_missing")
	m.reloadResult = map[bool]prometheus.Counter{
		true:  m.reloads.WithLabelValues("success"),
		false: m.reloads.WithLabelValues("failure"),
	}
	for _, kind := range proxyFailures {
		m.proxied.WithLabelValues(string(kind))
	}
	return m
}

// proxyFailures have a series from the beginning, so that rates are right from the
// first failure on.
var proxyFailures = [...]proxy.FailureKind{proxy.Refused, proxy.Unreachable, proxy.Broken, proxy.BodyInvalid, proxy.ClientGone}

// Proxy observes a proxy.
func (m *Metrics) Proxy() proxy.Observer {
	return proxy.Observer{
		InFlight: func(delta int) { m.inFlight.Add(float64(delta)) },
		Failed:   func(kind proxy.FailureKind) { m.proxied.WithLabelValues(string(kind)).Inc() },
	}
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "weir", Name: name, Help: help})
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "weir", Name: name, Help: help}, labels)
}

// Reloaded counts a change of the policies in force; ok tells whether it worked.
func (m *Metrics) Reloaded(ok bool) { m.reloadResult[ok].Inc() }

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

// Observe implements limiter.Observer.
func (m *Metrics) Observe(s *limiter.Snapshot) limiter.Recorder {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.newRecorder(s)
	rules, backends := labelsOf(s)
	for gone := range m.rules {
		if !rules[gone] {
			m.dropRule(gone)
		}
	}
	for gone := range m.backends {
		if !backends[gone] {
			m.dropBackend(gone)
		}
	}
	m.rules, m.backends = rules, backends
	m.policies.Set(float64(len(s.Set.Policies())))
	return r
}

// labelsOf lists what a snapshot has series of.
func labelsOf(s *limiter.Snapshot) (rules map[ruleLabels]bool, backends map[string]bool) {
	rules, backends = map[ruleLabels]bool{}, map[string]bool{}
	for _, p := range s.Set.Policies() {
		if p.Mode == v1alpha1.ModeDisabled {
			continue
		}
		rules[ruleLabels{policy: p.Name.String()}] = true
		for _, rule := range p.Rules {
			rules[ruleLabels{p.Name.String(), rule.Name}] = true
		}
	}
	for _, b := range s.Backends {
		if b != nil {
			backends[b.Name.String()] = true
		}
	}
	return rules, backends
}

func (m *Metrics) dropRule(gone ruleLabels) {
	for _, outcome := range outcomes {
		m.decisions.DeleteLabelValues(gone.policy, gone.rule, outcome)
	}
	m.missing.DeleteLabelValues(gone.policy, gone.rule)
	m.fallbacks.DeleteLabelValues(gone.policy, gone.rule)
	if gone.rule == "" {
		m.forwarded.DeleteLabelValues(gone.policy)
	}
}

func (m *Metrics) dropBackend(gone string) {
	for _, kind := range limiter.FailureKinds() {
		m.failures.DeleteLabelValues(gone, kind)
	}
	m.lostRefunds.DeleteLabelValues(gone)
	m.calls.DeleteLabelValues(gone)
	m.repairs.DeleteLabelValues(gone)
}
