package standalone

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts files into a folder of the test.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const good = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: storefront, namespace: shop}
spec:
  selector: {}
  rules:
  - name: per-user
    limit: 100
    window: 1m
    key: [{type: Header, name: X-User-Id}]
  - {name: all, limit: 1000, window: 1m}
`

func TestProblemsNameFileLineAndField(t *testing.T) {
	edit := func(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }
	for _, c := range []struct {
		reason, content, want string
	}{
		{"a good file", good, ""},
		{"a wrong window", edit("window: 1m", "window: 1mo"), ":9: spec.rules[0].window: "},
		{"a limit as text", edit("limit: 100", `limit: "100"`), ":8: spec.rules.limit: write a whole number, not a string"},
		{"a limit that is too large", edit("limit: 100", "limit: 9007199254740993"), ":8: spec.rules[0].limit: "},
		{"a limit beyond 64 bits", edit("limit: 100", "limit: 9223372036854775808"), ":8: spec.rules.limit: "},
		{"an unknown field", edit("window: 1m", "windw: 1m"), ":9: spec.rules[0].windw: unknown field"},
		{"a field that stands twice", edit("limit: 100", "limit: 100\n    limit: 5"), ":9: mapping key"},
		{"a tab", edit("    limit", "\tlimit"), ": found a tab"},
		{"an unclosed quote", edit("X-User-Id", `"X-User-Id`), ":"},
		{"a kind that is not known", edit("RateLimitPolicy", "RateLimitPolice"), ":2: kind: unknown kind"},
		{"no kind", "metadata: {name: x}", ":1: kind: write a kind"},
		{"no name", edit("name: storefront, ", ""), ":3: metadata.name: write a name"},
		{"the same policy twice", good + "---\n" + good, ":15: metadata.name: RateLimitPolicy shop/storefront stands at"},
		{"a list instead of an object", "- a\n- b\n", ":1: "},
		{"an empty file", "", ""},
		{"another kind of object is ignored", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n", "warning: kind: v1 Service is ignored"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			path := write(t, t.TempDir(), "policy.yaml", c.content)
			_, problems := Load([]string{path}, nil)
			got := problems.Error()
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("problems:\n%s\nwant %q", got, c.want)
			}
			if c.want != "" && !strings.HasPrefix(got, path+":") {
				t.Errorf("the file is not named: %s", got)
			}
		})
	}
}

func TestResolveSaysWhatIsMissing(t *testing.T) {
	backend := func(spec string) string {
		return "---\napiVersion: weir.dev/v1alpha1\nkind: RedisBackend\nmetadata: {name: default, namespace: shop}\nspec: " + spec + "\n"
	}
	for _, c := range []struct {
		reason, content, want string
	}{
		{"no backend", good, "policy shop/storefront needs RedisBackend shop/default, which none of the files holds; known: none"},
		{"a backend", good + backend(`{mode: Standalone, addresses: ["127.0.0.1:6379"]}`), ""},
		{"no secret", good + backend(`{mode: Standalone, addresses: ["127.0.0.1:6379"], credentialsSecretRef: {name: s}}`), "it needs Secret shop/s"},
		{"a secret without password", good + backend(`{mode: Standalone, addresses: ["127.0.0.1:6379"], credentialsSecretRef: {name: s}}`) +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\nstringData: {username: canary}\n", `key "password" is missing in Secret shop/s`},
		{"a mode that is not served yet", good + backend(`{mode: Cluster, addresses: ["127.0.0.1:6379"]}`), "not yet to Cluster"},
		{"a backend of another namespace", strings.Replace(good, "selector: {}", "selector: {}\n  redisRef: {name: b, namespace: other}", 1) +
			"---\napiVersion: weir.dev/v1alpha1\nkind: RedisBackend\nmetadata: {name: b, namespace: other}\nspec: {mode: Standalone, addresses: [\"r:1\"]}\n", "does not permit policies of namespace shop"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			objects, problems := Load([]string{write(t, t.TempDir(), "all.yaml", c.content)}, nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			_, problems = objects.Resolve()
			got := problems.Error()
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "canary") {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
}

func TestEverySampleLoads(t *testing.T) {
	root := filepath.Join("..", "..", "..", "config", "samples")
	for _, path := range []string{root, filepath.Join(root, "quickstart")} {
		objects, problems := Load([]string{path}, nil)
		if len(problems.Errors()) > 0 || len(objects.Policies) == 0 || len(objects.Backends) == 0 {
			t.Errorf("%s: %d policies, %d backends, %v", path, len(objects.Policies), len(objects.Backends), problems)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("a: &x [*x]\n---\nkind: RateLimitPolicy\n"))
	f.Add([]byte("{\"kind\": 1}"))
	f.Add([]byte("kind: Secret\napiVersion: v1\nmetadata: {name: s}\ndata: {a: '!'}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects := newObjects()
		problems := objects.parse(file{"fuzzed", data})
		if len(problems.Errors()) == 0 {
			objects.Resolve()
		}
		for _, problem := range problems {
			if problem.Message == "" {
				t.Errorf("an empty message: %+v", problem)
			}
		}
	})
}

func TestValuesOfSecretsAreInNoMessage(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  password: "
	for reason, value := range map[string]string{
		"an alias without anchor": "*canary", "a wrong tag": "!!int canary", "a tag that is not known": "!canary x",
		"a binary that is none": "!!binary canary*", "a mapping": "{canary: {a: 1}}", "an unclosed quote": "\"canary", "an unclosed list": "[canary",
	} {
		t.Run(reason, func(t *testing.T) {
			_, problems := Load([]string{write(t, t.TempDir(), "secret.yaml", secret+value+"\n")}, nil)
			if strings.Contains(problems.Error(), "canary") {
				t.Errorf("the message tells: %s", problems)
			}
		})
	}
}

func TestAliasesThatMakeTooMuchAreRefused(t *testing.T) {
	content := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 1500) + "]\n"
	_, problems := Load([]string{write(t, t.TempDir(), "bomb.yaml", content)}, nil)
	if !strings.Contains(problems.Error(), "make more than 4 MiB") {
		t.Errorf("problems %.200s", problems.Error())
	}
}

func TestAliasOfItselfIsRefused(t *testing.T) {
	_, problems := Load([]string{write(t, t.TempDir(), "loop.yaml", "a: &a [*a]\n")}, nil)
	if len(problems.Errors()) == 0 {
		t.Error("it is accepted")
	}
}
