package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	redistest "github.com/weir-dev/weir/test/redis"
)

// backendAt is a backend of namespace shop with one Secret.
func backendAt(address, more string) string {
	return fmt.Sprintf(`---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: default, namespace: shop}
spec:
  mode: Standalone
  addresses: [%q]
  timeouts: {dial: 5s}
%s---
apiVersion: v1
kind: Secret
metadata: {name: redis, namespace: shop}
stringData: {username: weir, password: canary}
`, address, more)
}

func TestValidateConnects(t *testing.T) {
	server := redistest.Start(t)
	for _, words := range [][]any{
		{"ACL", "SETUSER", "weir", "on", ">canary", "~rl:*", "+@all"},
		{"CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru"},
	} {
		if err := server.Client().Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	login := "  credentialsSecretRef: {name: redis}\n"
	for name, test := range map[string]struct {
		text   string
		code   int
		stdout string
		stderr string
	}{
		"all is well": {
			goodPolicy + backendAt(server.Addr(), login), 0,
			"RedisBackend shop/default with Secret redis: ok: version …, primary, 0 replicas connected, may evict counters: set maxmemory-policy noeviction\n", "",
		},
		"a namespace's login is wrong": {
			goodPolicy + backendAt(server.Addr(), "  namespaceCredentials: [{namespace: pay, secretRef: {name: other}}]\n"+login) + strings.NewReplacer("name: redis", "name: other", "canary", "canaries").Replace(secretOf(backendAt("", ""))), 1,
			"f.yaml:9: RedisBackend shop/default with Secret other: WrongCredentials: the server " + server.Addr() + " does not accept username and password, or the user is turned off: check both", "",
		},
		"a login that is not in the files": {
			goodPolicy + backendAt(server.Addr(), "  namespaceCredentials: [{namespace: pay, secretRef: {name: other}}]\n"+login), 1,
			"spec.namespaceCredentials: RedisBackend shop/default needs Secret shop/other, which none of the files holds\n", "",
		},
		"nothing is tried while files are wrong": {badPolicy + backendAt("127.0.0.1:1", ""), 1, "write a whole number", ""},
		"nothing to connect to":                  {goodPolicy, 1, "1 policy, 0 backends: ok\n", "enforcer: --connect: the files hold no RedisBackend to connect to; name its file too\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			path := writeFile(t, "f.yaml", test.text)
			code := run(t.Context(), []string{"validate", "--connect", path}, nil, &stdout, &stderr)
			got := stdout.String()
			start, end, _ := strings.Cut(test.stdout, "…")
			if code != test.code || !strings.Contains(got, start) || !strings.Contains(got, end) || stderr.String() != test.stderr ||
				strings.Contains(got, "canary") || test.code == 1 && strings.Contains(got, "Unreachable") {
				t.Errorf("code %d, %s%s\nwant %d, %s%s", code, got, stderr.String(), test.code, test.stdout, test.stderr)
			}
		})
	}
}

// secretOf is the Secret behind a backend.
func secretOf(text string) string {
	return text[strings.LastIndex(text, "---"):]
}

func TestValidateConnectsWithinATime(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no time at all":                {[]string{"--connect-timeout", "0s"}, 2, "enforcer: --connect-timeout: write a duration such as 15s\n"},
		"the end of the process, first": {[]string{"--connect"}, 1, "enforcer: interrupted before all backends were tried\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "f.yaml", goodPolicy+goodBackend)
			if got := enforcer(t, "", append([]string{"validate", path}, test.args...)...); got.code != test.code || got.stderr != test.want {
				t.Errorf("got %+v\nwant %q", got, test.want)
			}
		})
	}
}

// TestTheGuideIsInOrder validates the documents that docs/guide/redis.md shows,
// together.
func TestTheGuideIsInOrder(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for i, block := range strings.Split(string(text), "```") {
		if yaml, ok := strings.CutPrefix(block, "yaml\n"); ok && i%2 == 1 {
			documents = append(documents, yaml)
		}
	}
	want := fmt.Sprintf("0 policies, %d backends: ok\n", len(documents))
	got := enforcer(t, strings.Join(documents, "---\n"), "validate", "-")
	if got != (outcome{0, want, ""}) {
		t.Errorf("got %+v\nwant %q", got, want)
	}
}
