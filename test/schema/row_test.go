package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// row is one spec, and the fields that are wrong in it: none for a good one. Each
// wrong field is named once.
type row struct {
	reason string
	spec   string // JSON
	wrong  []string
}

// scope is a place in a spec that rows fill in.
type scope struct {
	path string
	fill func(fields string) string
}

const (
	basePolicy  = "{selector: {}, rules: [{name: r, limit: 1, window: 1m}]}"
	baseRule    = "{name: r, limit: 1, window: 1m}"
	baseBackend = "{mode: Standalone, addresses: ['redis:6379']}"
)

// The places. Fields are written in YAML's flow style, without the outer braces.
// Those that a row does not set are taken from a good spec.
var (
	inPolicy      = scope{"spec", func(f string) string { return over(basePolicy, f) }}
	inRule        = within(inPolicy, "rules[0]", "rules: [%s]", baseRule)
	inMatch       = within(inRule, "match", "match: %s", "{}")
	inPath        = within(inMatch, "paths[0]", "paths: [%s]", "{}")
	inHeader      = within(inMatch, "headers[0]", "headers: [%s]", "{}")
	inKey         = within(inRule, "key[0]", "key: [%s]", "{}")
	inExempt      = within(inPolicy, "exempt[0]", "exempt: [%s]", "{name: e}")
	inClient      = within(inPolicy, "clientAddress", "clientAddress: %s", "{}")
	inResponse    = within(inPolicy, "response", "response: %s", "{}")
	inBackend     = scope{"spec", func(f string) string { return over(baseBackend, f) }}
	inTLS         = within(inBackend, "tls", "tls: %s", "{}")
	inTimeouts    = within(inBackend, "timeouts", "timeouts: %s", "{}")
	inCredentials = within(inBackend, "namespaceCredentials[0]", "namespaceCredentials: [%s]", "{namespace: shop, secretRef: {name: s}}")
	inAllowed     = within(inBackend, "allowedNamespaces", "allowedNamespaces: %s", "{}")
)

// within is a place inside another.
func within(outer scope, path, form, base string) scope {
	return scope{outer.path + "." + path, func(fields string) string {
		return outer.fill(fmt.Sprintf(form, over(base, fields)))
	}}
}

// good is a row of a spec that is accepted.
func (s scope) good(reason, fields string) row {
	return row{reason: s.path + ": " + reason, spec: s.fill(fields)}
}

// bad is a row of a spec in which the named fields are wrong. They are named from
// the scope on; "" is the scope itself.
func (s scope) bad(reason, fields string, wrong ...string) row {
	r := s.good(reason, fields)
	for _, path := range wrong {
		if path != "" && path[0] != '[' {
			path = "." + path
		}
		r.wrong = append(r.wrong, s.path+path)
	}
	return r
}

// over lays fields over those of a base. The result is JSON, which is YAML too.
func over(base, fields string) string {
	merged := object(base)
	for name, value := range object("{" + fields + "}") {
		merged[name] = value
	}
	text, err := json.Marshal(merged)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func object(text string) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	if err := yaml.UnmarshalStrict([]byte(text), &fields); err != nil {
		panic(fmt.Sprintf("row %s: %v", text, err))
	}
	return fields
}

// many repeats a form with numbers from 0, as the items of a list.
func many(n int, form string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(form, i)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func long(n int) string { return strings.Repeat("a", n) }

// manifest is a whole object with a row's spec.
func manifest(kind, spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "weir.dev/v1alpha1", "kind": %q, "metadata": {"name": "p", "namespace": "shop"}, "spec": %s}`, kind, spec)
}

func TestTheBasesAreGood(t *testing.T) {
	for kind, spec := range map[string]string{"RateLimitPolicy": basePolicy, "RedisBackend": baseBackend} {
		text, err := yaml.YAMLToJSON([]byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		judge(t, kind).want(t, row{spec: string(text)})
	}
}
