package policy

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// readPolicy reads a valid policy.
func readPolicy(t *testing.T, spec string) *v1alpha1.RateLimitPolicy {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("spec:\n  " + spec + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodePolicy(data)
	if err != nil {
		t.Fatal(err)
	}
	if errs := ValidatePolicy(p); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return p
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		reason, spec string
		want         []string // the beginnings of the warnings
	}{
		{"a header with a rule for the address beside it", "rules: [{name: u, limit: 1, window: 1m, key: [{type: Header, name: X-User}]}, {name: a, limit: 9, window: 1m, key: [{type: ClientIP}]}]", nil},
		{"one counter for all", "rules: [{name: a, limit: 1, window: 1m}]", nil},
		{"a header that anyone sets", "rules: [{name: u, limit: 1, window: 1m, key: [{type: Header, name: X-User}]}]", []string{"every rule is keyed"}},
		{"a header together with the address is still chosen", "rules: [{name: u, limit: 1, window: 1m, key: [{type: ClientIP}, {type: Cookie, name: sid}]}]", []string{"every rule is keyed"}},
		{"a header that proxies set", "rules: [{name: u, limit: 1, window: 1m, key: [{type: Header, name: X-User, trustedFrom: Proxies}]}]", nil},
		{"a descriptor is a gateway's word", "rules: [{name: u, limit: 1, window: 1m, key: [{type: Descriptor, name: user}]}]", nil},
		{"a query parameter that may be left out", "rules: [{name: u, limit: 1, window: 1m, key: [{type: QueryParam, name: q, onMissing: Skip}]}]", []string{"every rule is keyed", "every rule leaves out"}},
		{"a trusted header without anyone to trust", "clientAddress: {trustedHops: 0}\n  rules: [{name: u, limit: 1, window: 1m, key: [{type: Header, name: X-User, trustedFrom: Proxies}]}]", []string{`rule "u" reads a header`}},
		{"an exemption for all of IPv4", "exempt: [{name: all, match: {clientCIDRs: [10.0.0.0/8, 0.0.0.0/0]}}]\n  rules: [{name: a, limit: 1, window: 1m}]", []string{`exemption "all"`}},
		{"an exemption for all paths", "exempt: [{name: all, match: {paths: [{type: Prefix, value: /}]}}]\n  rules: [{name: a, limit: 1, window: 1m}]", []string{`exemption "all"`}},
		{"an exemption for some methods of all paths", "exempt: [{name: reads, match: {methods: [GET], paths: [{type: Prefix, value: /}]}}]\n  rules: [{name: a, limit: 1, window: 1m}]", nil},
		{"an exemption by path", "exempt: [{name: probes, match: {paths: [{type: Prefix, value: /healthz}]}}]\n  rules: [{name: a, limit: 1, window: 1m}]", nil},
		{"two windows that both matter", "rules: [{name: s, limit: 10, window: 1s}, {name: d, limit: 250, window: 1d}]", nil},
		{"a minute that the second keeps out of reach", "rules: [{name: m, limit: 600, window: 1m}, {name: s, limit: 10, window: 1s}]", []string{`rule "m" never denies: rule "s" admits at most as many in the same time (10/1s against 600/1m)`}},
		{"a minute that is just within reach", "rules: [{name: m, limit: 599, window: 1m}, {name: s, limit: 10, window: 1s}]", nil},
		{"windows that do not nest", "rules: [{name: a, limit: 1000, window: 7s}, {name: b, limit: 1, window: 2s}]", nil},
		{"rules for different callers", "rules: [{name: m, limit: 600, window: 1m, key: [{type: ClientIP}]}, {name: s, limit: 10, window: 1s}]", nil},
		{"a rule that blocks", "rules: [{name: m, limit: 0, window: 1m}, {name: s, limit: 0, window: 1s}]", nil},
		{"limits whose product would overflow", "rules: [{name: d, limit: 9007199254740991, window: 366d}, {name: s, limit: 9007199254740991, window: 1s}]", nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := Warnings(readPolicy(t, "selector: {}\n  "+c.spec))
			if len(got) != len(c.want) {
				t.Fatalf("warnings %q, want %q", got, c.want)
			}
			for i, begin := range c.want {
				if !strings.HasPrefix(got[i], begin) {
					t.Errorf("warning %q, want %q", got[i], begin)
				}
			}
		})
	}
}
