package answer

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// rules compiles policies, each written as metadata and spec, and returns their
// rules by policy name and place.
func rules(t testing.TB, policies ...string) []*policy.Rule {
	t.Helper()
	var all []*policy.Policy
	for _, text := range policies {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.DecodePolicy(data)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := policy.Compile(p, policy.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, compiled)
	}
	return policy.NewSet(all).Rules()
}

// storefront is a policy with the rules per-user and per-day.
func storefront(t testing.TB, options string) (user, day *policy.Rule) {
	t.Helper()
	r := rules(t, `{metadata: {namespace: shop, name: storefront}, spec: {selector: {}, `+options+`
  rules: [{name: per-user, limit: 100, window: 1m}, {name: per-day, limit: 1000, window: 24h}]}}`)
	return r[0], r[1]
}

const (
	userReset = 1796076018
	dayReset  = 1796083200
)

// denied is a decision that the rule refused for 18 seconds.
func denied(rule *policy.Rule) *limiter.Decision {
	return &limiter.Decision{Outcome: limiter.Denied, Cause: rule, RetryAfter: 18,
		Quotas: []limiter.Quota{{Rule: rule, Reset: userReset, Wait: 18, Over: true}}}
}

func allowed(quotas ...limiter.Quota) *limiter.Decision { return &limiter.Decision{Quotas: quotas} }

// written are the headers by their names as they are on the wire.
func written(h http.Header) map[string]string {
	all := map[string]string{}
	for name, values := range h {
		for _, value := range values {
			all[name] += "|" + value
		}
		all[name] = all[name][1:]
	}
	return all
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
