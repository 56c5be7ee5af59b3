package policy

import (
	"strings"
	"testing"
)

func TestDecodingNamesTheField(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		want         []string // one for each error
	}{
		{"nothing wrong", `{"spec": {"selector": {}, "rules": [{"name": "a", "limit": 1, "window": "1m"}]}}`, nil},
		{"a field that is null is absent", `{"spec": {"selector": null, "mode": null}}`, nil},
		{"an unknown field", `{"spec": {"rules": [{"name": "a", "burst": 5}]}}`, []string{`unknown field "spec.rules[0].burst"`}},
		{"a field in another case", `{"spec": {"Domain": "shop"}}`, []string{`unknown field "spec.Domain"`}},
		{"a doubled field", `{"spec": {"domain": "a", "domain": "b"}}`, []string{`duplicate field "spec.domain"`}},
		{"several", `{"spec": {"a": 1, "b": 2}}`, []string{`unknown field "spec.a"`, `unknown field "spec.b"`}},
		{"a number as text", `{"spec": {"rules": [{"limit": "100"}]}}`, []string{"spec.rules.limit"}},
		{"a number with a fraction", `{"spec": {"rules": [{"limit": 1.5}]}}`, []string{"spec.rules.limit"}},
		{"a number that nothing holds", `{"spec": {"rules": [{"limit": 9223372036854775808}]}}`, []string{"spec.rules.limit"}},
		{"a number as a window", `{"spec": {"rules": [{"window": 60}]}}`, []string{"spec.rules.window"}},
		{"an empty text", `{"spec": {"mode": ""}}`, []string{"spec.mode: Invalid value: \"\": leave the field out, or write a value"}},
		{"empty texts further in", `{"spec": {"response": {"detail": ""}, "rules": [{}, {"algorithm": "", "key": [{"name": ""}]}]}}`,
			[]string{"spec.response.detail", "spec.rules[1].algorithm", "spec.rules[1].key[0].name"}},
		{"an unknown field that is empty", `{"spec": {"kind": "", "modes": {"a": ""}}}`, []string{`unknown field "spec.kind"`, `unknown field "spec.modes"`}},
		{"texts that mean something empty", `{"spec": {"selector": {"matchLabels": {"a": ""}}, "rules": [{"match": {"headers": [{"value": ""}]}}]}}`, nil},
		{"no object", `[]`, []string{"cannot unmarshal array"}},
		{"no JSON", `{"spec": `, []string{"unexpected end of JSON input"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			_, err := DecodePolicy([]byte(c.text))
			var got []string
			if err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if len(got) != len(c.want) {
				t.Fatalf("errors %q, want %q", got, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("error %q, want %q", got[i], want)
				}
			}
		})
	}
}

func TestDecodingKeepsWhatItCould(t *testing.T) {
	b, err := DecodeBackend([]byte(`{"spec": {"mode": "Cluster", "modus": "x", "tls": {"serverName": ""}}}`))
	if err == nil || b.Spec.Mode != "Cluster" || b.Spec.TLS == nil {
		t.Errorf("backend %+v, error %v", b.Spec, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"spec": {"domain": "", "rules": [{"name": "a", "limit": 1, "window": "1m", "key": [{"type": "Header", "name": "X"}]}]}}`))
	f.Add([]byte(`{"spec": {"rules": [null, {"match": {"paths": [{"type": "RegularExpression", "value": "("}]}}]}}`))
	f.Add([]byte(`{"spec": {"selector": {"matchExpressions": [{}]}, "clientAddress": {"trustedProxies": ["::ffff:1.2.3.4"]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := DecodePolicy(text); err == nil && len(ValidatePolicy(p)) == 0 {
			p.Namespace, p.Name = "shop", "p" // Compile refuses those that a cluster would
			if _, err := Compile(p, Defaults{}); err != nil {
				t.Errorf("valid, but %v", err)
			}
			Warnings(p)
		}
		if b, err := DecodeBackend(text); err == nil {
			ValidateBackend(b)
		}
	})
}
