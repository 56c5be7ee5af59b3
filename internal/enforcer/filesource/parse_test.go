package filesource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/policy"
)

// head is all of a policy but its rules: five lines.
const head = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: storefront, namespace: shop}
spec:
  selector: {}
`

const secretHead = `apiVersion: v1
kind: Secret
metadata: {name: redis, namespace: shop}
`

// problemCases are texts and their problems. A problem that ends with … goes on in
// the words of the policy package.
var problemCases = map[string]struct {
	text string
	want []string
}{
	"a window of the wrong form": {
		head + "  rules:\n  - name: per-user\n    limit: 100\n    window: 1x\n",
		[]string{`f.yaml:9: spec.rules[0].window: Invalid value: "1x": …`},
	},
	"several wrong types and unknown fields are reported together": {
		head + "  rules:\n  - name: per-user\n    limit: \"100\"\n    window: 60\n    wind0w: 1m\n  bogus: 1\n",
		[]string{
			"f.yaml:8: spec.rules[0].limit: is text; write a whole number, without quotes or fraction",
			"f.yaml:9: spec.rules[0].window: is a number; write text; put it in quotes",
			"f.yaml:10: spec.rules[0].wind0w: no such field; known here: name, match, limit, window, key, algorithm",
			"f.yaml:11: spec.bogus: no such field; known here: selector, domain, redisRef, mode, failureMode, clientAddress, request, response, exempt, rules",
		},
	},
	"a wrong type deep in a list": {
		head + "  rules:\n  - {name: a, limit: 1, window: 1m}\n  - name: b\n    limit: 1\n    window: 1m\n    key:\n    - {type: ClientIP}\n    - type: Header\n      name: [x]\n",
		[]string{"f.yaml:14: spec.rules[1].key[1].name: is a list; write text; put it in quotes"},
	},
	"a number with a fraction": {
		head + "  rules:\n  - name: per-user\n    limit: 1.5\n    window: 1m\n",
		[]string{"f.yaml:8: spec.rules[0].limit: write a whole number, without fraction and of at most 9007199254740991"},
	},
	"a list where an object belongs": {
		"apiVersion: weir.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: [shop]\n",
		[]string{"f.yaml:3: metadata: is a list; write an object"},
	},
	"a scalar where a list belongs": {
		head + "  rules: 5\n",
		[]string{"f.yaml:6: spec.rules: is a number; write a list"},
	},
	"a missing field is reported where it belongs": {
		head + "  rules:\n  - name: per-user\n    window: 1m\n",
		[]string{"f.yaml:7: spec.rules[0].limit: Required value: …"},
	},
	"the second document of a file": {
		"# only a comment\n---\n" + head + "  rules:\n  - {name: a, limit: 1, window: 1m}\n---\n" +
			strings.Replace(head, "storefront", "other", 1) + "  rules:\n  - {name: a, limit: 1, window: 0s}\n",
		[]string{`f.yaml:17: spec.rules[0].window: Invalid value: "0s": …`},
	},
	"the same object twice": {
		head + "  rules:\n  - {name: a, limit: 1, window: 1m}\n---\n" + head + "  rules:\n  - {name: a, limit: 2, window: 1m}\n",
		[]string{"f.yaml:11: metadata.name: RateLimitPolicy shop/storefront stands in the files twice, first in f.yaml:1; remove one"},
	},
	"the same key twice": {
		head + "  rules:\n  - name: a\n    limit: 1\n    limit: 2\n    window: 1m\n",
		[]string{"f.yaml:9: spec.rules[0].limit: stands twice, first in line 8; remove one"},
	},
	"a tab": {
		head + "  rules:\n\t- name: a\n",
		[]string{"f.yaml:7: not valid YAML: found character that cannot start any token; indent with spaces, not tabs, and put a value that begins with @, ` or % in quotes"},
	},
	"a quote that is not closed": {
		head + "  domain: \"a\n  rules: []\n",
		[]string{"f.yaml:6: not valid YAML: found unexpected end of stream; a quote is not closed"},
	},
	"a bracket that is not closed": {
		head + "  domain: [a\n  rules: []\n",
		[]string{"f.yaml:6: not valid YAML: did not find expected ',' or ']'"},
	},
	"a colon in a value": {
		head + "  domain: a: b\n",
		[]string{"f.yaml:6: not valid YAML: mapping values are not allowed in this context; put a value that contains a colon and a space in quotes, or mend the indentation"},
	},
	"an alias to nothing": {
		head + "  domain: *shop\n",
		[]string{"f.yaml:6: not valid YAML: unknown anchor (not shown) referenced; put a value that begins with * in quotes"},
	},
	"an alias within its own value": {
		"apiVersion: weir.dev/v1alpha1\nkind: RateLimitPolicy\nspec: &a\n  rules: [*a]\n",
		[]string{"f.yaml:4: spec.rules[0]: an alias stands within the value that it refers to"},
	},
	"two documents without a separator": {
		"a: 1\n...\nb: 2\n",
		[]string{"f.yaml:3: not valid YAML: did not find expected <document start>"},
	},
	"text that is no object": {
		"\nhello\n",
		[]string{"f.yaml:2: write an object with apiVersion, kind, metadata and spec"},
	},
	"no apiVersion": {
		"kind: RateLimitPolicy\n",
		[]string{"f.yaml:1: apiVersion: write apiVersion: weir.dev/v1alpha1 for a RateLimitPolicy or RedisBackend, v1 for a Secret or ConfigMap"},
	},
	"no kind": {
		"apiVersion: v1\n",
		[]string{"f.yaml:1: kind: write a kind: RateLimitPolicy, RedisBackend, Secret or ConfigMap"},
	},
	"a version that does not exist": {
		"apiVersion: weir.dev/v1\nkind: RedisBackend\n",
		[]string{`f.yaml:1: apiVersion: "weir.dev/v1" is not Weir's: write weir.dev/v1alpha1, or keep the document elsewhere`},
	},
	"a typo in the kind": {
		"apiVersion: weir.dev/v1alpha1\nkind: RateLimitPolcy\n",
		[]string{`f.yaml:2: kind: "RateLimitPolcy" is not known: write RateLimitPolicy or RedisBackend`},
	},
	"a kind of ours in another group": {
		"apiVersion: limits.example.com/v1\nkind: RateLimitPolicy\n",
		[]string{`f.yaml:1: apiVersion: "limits.example.com/v1" is not Weir's: write weir.dev/v1alpha1, or keep the document elsewhere`},
	},
	"a list of objects": {
		"apiVersion: v1\nkind: List\nitems: []\n",
		[]string{"f.yaml:2: kind: lists are not read: write each item as a document of its own, with --- between them"},
	},
	"no name": {
		"apiVersion: weir.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: {namespace: shop}\n",
		[]string{"f.yaml:3: metadata.name: write a name: lower-case letters, digits, dashes and dots"},
	},
	"a backend without addresses": {
		"apiVersion: weir.dev/v1alpha1\nkind: RedisBackend\nmetadata: {name: default}\nspec: {mode: Standalone}\n",
		[]string{"f.yaml:4: spec.addresses: Required value: …"},
	},
}

func TestProblemsNameFileLineAndField(t *testing.T) {
	for name, test := range problemCases {
		t.Run(name, func(t *testing.T) {
			_, problems := Parse([]File{{Name: "f.yaml", Data: []byte(test.text)}})
			got := texts(problems)
			for i := range min(len(got), len(test.want)) {
				if start, ok := strings.CutSuffix(test.want[i], "…"); ok && strings.HasPrefix(got[i], start) {
					got[i] = test.want[i]
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func texts(problems Problems) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return all
}

func TestNoProblemShowsAValueOfASecret(t *testing.T) {
	for name, text := range map[string]string{
		"not base64":             "data: {password: canary!}\n",
		"a field with a typo":    "stringdata: {password: canary}\n",
		"a number":               "stringData: {password: 7777777}\n",
		"an alias to nothing":    "stringData: {password: *canary}\n",
		"a tag that cannot hold": "stringData: {password: !!int canary}\n",
		"an unknown escape":      "stringData: {password: \"\\canary\"}\n",
		"a directive":            "stringData: {password: %canary}\n",
		"a merge of text":        "stringData: {<<: canary}\n",
		"a list as key":          "stringData: {? [canary, 7777777] : x}\n",
		"an object":              "stringData: {password: {canary: canary}}\n",
		"text for an object":     "stringData: canary\n",
		"a quote not closed":     "stringData: {password: \"canary}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Parse([]File{{Name: "f.yaml", Data: []byte(secretHead + text)}})
			if len(problems) == 0 {
				t.Fatal("there is no problem")
			}
			if shown := problems.String(); strings.Contains(shown, "canary") || strings.Contains(shown, "7777777") {
				t.Errorf("shown: %s", shown)
			}
		})
	}
}

func TestProblemWithASecretsValueNamesItsLine(t *testing.T) {
	text := secretHead + "data:\n  username: d2Vpcg==\n  password: plain text\n"
	_, problems := Parse([]File{{Name: "f.yaml", Data: []byte(text)}})
	want := []string{"f.yaml:6: data.password: write base64, or plain text under stringData"}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Error(diff)
	}
}

func TestObjectsOfSeveralFilesAndKinds(t *testing.T) {
	files := []File{
		{Name: "a.yaml", Data: []byte("\ufeff" + head + "  rules:\n  - {name: a, limit: 1, window: 1m, key: [{type: ClientIP}]}\n--- # more\n" + secretHead +
			"data: {username: d2Vpcg==, password: b2xk}\nstringData: {password: new}\n")},
		{Name: "b.json", Data: []byte(`{"apiVersion":"weir.dev/v1alpha1","kind":"RedisBackend","metadata":{"name":"cache"},
			"spec":{"mode":"Standalone","addresses":["127.0.0.1:6379"]}}`)},
		{Name: "c.yml", Data: []byte("apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: ca}\r\ndata:\r\n  ca.crt: pem\r\n---\r\n---\r\n")},
	}
	o, problems := Parse(files)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if len(o.Policies) != 1 || o.Policies[0].Namespace != "shop" || o.Policies[0].Place() != "a.yaml:1" {
		t.Errorf("policies: %+v", o.Policies)
	}
	backend, ok := o.Backends[policy.Name{Namespace: "default", Name: "cache"}]
	if !ok || backend.Namespace != "default" {
		t.Errorf("a backend without namespace is not in default: %+v", o.Backends)
	}
	secret := o.Secrets[policy.Name{Namespace: "shop", Name: "redis"}]
	if diff := cmp.Diff(map[string][]byte{"username": []byte("weir"), "password": []byte("new")}, secret.Values); diff != "" {
		t.Error(diff)
	}
	if got := string(o.ConfigMaps[policy.Name{Namespace: "default", Name: "ca"}].Values["ca.crt"]); got != "pem" {
		t.Errorf("ca.crt is %q", got)
	}
}

func TestYAMLMeansWhatItMeansToKubectl(t *testing.T) {
	// YAML 1.1 takes yes for true, so a header's value must be quoted there too.
	text := head + "  rules:\n  - name: a\n    limit: 1\n    window: 1m\n    match: {headers: [{name: x, type: Exact, value: yes}]}\n"
	_, problems := Parse([]File{{Name: "f.yaml", Data: []byte(text)}})
	want := []string{"f.yaml:10: spec.rules[0].match.headers[0].value: is true or false; write text; put it in quotes"}
	if diff := cmp.Diff(want, texts(problems)); diff != "" {
		t.Error(diff)
	}
}

func TestAnchorsAndMergesWork(t *testing.T) {
	text := head + "  rules:\n  - &first\n    name: a\n    limit: 1\n    window: 1m\n    key: [{type: ClientIP}]\n  - <<: *first\n    name: b\n"
	o, problems := Parse([]File{{Name: "f.yaml", Data: []byte(text)}})
	if len(problems) > 0 || len(o.Policies) != 1 || o.Policies[0].Spec.Rules[1].Window != "1m" {
		t.Errorf("problems: %v", problems)
	}
}

func TestWarnings(t *testing.T) {
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\n" + head +
		"  rules:\n  - name: a\n    limit: 1\n    window: 1m\n    key: [{type: Header, name: X-User-Id}]\n"
	o, problems := Parse([]File{{Name: "f.yaml", Data: []byte(text)}})
	if len(problems) > 0 || len(o.Policies) != 1 {
		t.Fatal(problems)
	}
	if len(o.Warnings) != 2 || o.Warnings[0].Line != 2 || o.Warnings[1].Field != "spec.rules" {
		t.Errorf("warnings: %v", texts(o.Warnings))
	}
}

func TestHugeInputsAreRefusedWithLittleWork(t *testing.T) {
	bomb := "a: &a [" + strings.Repeat("x,", 100) + "]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 100))
	}
	for name, text := range map[string]string{
		"aliases of aliases":            bomb,
		"one long text, many times":     "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n",
		"lists in lists":                "a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
		"lists in lists, never closed":  "a: " + strings.Repeat("[", 100_000),
		"more than fits in a file":      strings.Repeat("#", maxFileBytes+1),
		"a long key with many children": "? " + strings.Repeat("k", 1<<20) + "\n: {" + strings.Repeat("a: [b],", 1000) + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			file, err := ReadStream("f.yaml", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if _, problems := Parse([]File{file}); len(problems) == 0 {
				t.Error("there is no problem")
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + "  rules:\n  - {name: a, limit: 1, window: 1m}\n"))
	f.Add([]byte(secretHead + "stringData: {password: hunter2}\n---\na: &a [*a]\n"))
	f.Add([]byte("{\"apiVersion\": \"weir.dev/v1alpha1\", \"kind\": \"RedisBackend\", \"spec\": {\"addresses\": [1, {}, null]}}"))
	f.Add([]byte("\ufeff---\t\r\nx: !!binary aGk=\n? [a]\n: b\n<<: {c: 2001-01-01}\n..."))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := 1 + strings.Count(string(text), "\n")
		o, problems := Parse([]File{{Name: "f", Data: text}})
		for _, p := range append(problems, o.Warnings...) {
			if p.File != "f" || p.Message == "" || p.Line < 1 || p.Line > lines+1 {
				t.Errorf("of %d lines: %+v", lines, p)
			}
		}
		for _, p := range o.Policies {
			if errs := policy.ValidatePolicy(p.RateLimitPolicy); len(errs) > 0 || p.Name == "" || p.Namespace == "" {
				t.Errorf("an invalid policy came through: %v", errs)
			}
		}
	})
}
