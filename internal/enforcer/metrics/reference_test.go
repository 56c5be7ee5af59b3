package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// names of all metrics and their labels, which dashboards and alerts rely on.
var names = map[string][]string{
	"weir_counter_repairs_total":           {"backend"},
	"weir_decisions_total":                 {"outcome", "policy", "rule"},
	"weir_fallback_decisions_total":        {"policy", "rule"},
	"weir_forwarded_address_ignored_total": {"policy"},
	"weir_lost_refunds_total":              {"backend"},
	"weir_missing_keys_total":              {"policy", "rule"},
	"weir_policies":                        nil,
	"weir_policy_reloads_total":            {"result"},
	"weir_proxy_failures_total":            {"kind"},
	"weir_proxy_requests_in_flight":        nil,
	"weir_redis_call_duration_seconds":     {"backend"},
	"weir_refused_requests_total":          {"reason"},
	"weir_store_failures_total":            {"backend", "kind"},
}

// registered are the metrics of an enforcer with a policy and a backend, with the
// values of the labels that are words of fixed lists.
func registered(t *testing.T) (labels map[string][]string, words map[string][]string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, backend := New(registry), backendOf(memory())
	m.Observe(snapshot(t, backend, map[string]string{"p": `{selector: {}, rules: [{name: r, limit: 1, window: 1m}]}`}))
	m.Backend(backend.Name).Called(time.Millisecond, nil)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels, words = map[string][]string{}, map[string][]string{}
	for _, family := range families {
		name := family.GetName()
		labels[name] = nil
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels[name] = append(labels[name], pair.GetName())
		}
		for _, series := range family.GetMetric() {
			for _, pair := range series.GetLabel() {
				if label := pair.GetName(); label != "policy" && label != "rule" && label != "backend" {
					words[name] = append(words[name], pair.GetValue())
				}
			}
		}
	}
	return labels, words
}

func TestNamesStay(t *testing.T) {
	got, _ := registered(t)
	want(t, "metrics", got, names)
}

var code = regexp.MustCompile("`([^`]+)`")

// TestReferenceIsComplete compares the documentation with what is registered.
func TestReferenceIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, meanings := map[string][]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.SplitN(line, "|", 5)
		if len(cells) < 5 || !strings.HasPrefix(cells[1], " `weir_") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		documented[name], meanings[name] = nil, cells[3]
		for _, label := range code.FindAllStringSubmatch(cells[2], -1) {
			documented[name] = append(documented[name], label[1])
		}
		slices.Sort(documented[name])
	}
	got, words := registered(t)
	want(t, "documented metrics", documented, got)
	for name, values := range words {
		for _, value := range values {
			if !strings.Contains(meanings[name], "`"+value+"`") {
				t.Errorf("what is said about %s lacks `%s`", name, value)
			}
		}
	}
}

// TestOutcomesHaveNames guards the table that is indexed by verdict.
func TestOutcomesHaveNames(t *testing.T) {
	if slices.Contains(outcomes[:], "") || len(outcomes) != int(limiter.Failures)+3 {
		t.Errorf("outcomes are %q", outcomes)
	}
}
