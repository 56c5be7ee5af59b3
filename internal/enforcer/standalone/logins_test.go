package standalone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	redistest "github.com/weir-dev/weir/test/redis"
)

func TestLoginsAreAllThatABackendHas(t *testing.T) {
	secret := func(name string) string {
		return strings.Replace(secretText, "name: redis", "name: "+name, 1) + "stringData: {username: " + name + ", password: p}\n"
	}
	elsewhere := strings.Replace(policyText("storefront", 1, "  redisRef: {name: default, namespace: shop}\n"), "namespace: shop}\n", "namespace: pay}\n", 1)
	backend := func(spec string) string { return backendText("default", "127.0.0.1:6379", spec) }
	for name, test := range map[string]struct {
		text         string
		want         []string
		wantProblems []string
	}{
		"nobody logs in by name": {backend(""), []string{`shop/default "" as "" for [shop]`}, nil},
		"one Secret for all": {
			elsewhere + backend("  credentialsSecretRef: {name: all}\n  allowedNamespaces: {from: All}\n") + secret("all"),
			[]string{`shop/default "all" as "all" for [pay shop]`}, nil,
		},
		"a policy that is not permitted does not log in": {
			elsewhere + backend("  credentialsSecretRef: {name: all}\n") + secret("all"),
			[]string{`shop/default "all" as "all" for [shop]`}, nil,
		},
		"a Secret for some": {
			backend("  credentialsSecretRef: {name: all}\n  namespaceCredentials: [{namespace: pay, secretRef: {name: own}}, {namespace: ads, secretRef: {name: own}}]\n") + secret("all") + secret("own"),
			[]string{`shop/default "all" as "all" for [shop]`, `shop/default "own" as "own" for [ads pay]`}, nil,
		},
		"a Secret for each": {
			backend("  namespaceCredentials: [{namespace: pay, secretRef: {name: own}}]\n") + secret("own"),
			[]string{`shop/default "own" as "own" for [pay]`}, nil,
		},
		"two backends": {
			backendText("b", "127.0.0.1:6379", "") + backendText("a", "127.0.0.1:6379", ""),
			[]string{`shop/a "" as "" for [shop]`, `shop/b "" as "" for [shop]`}, nil,
		},
		"a Secret that is not there": {
			backend("  credentialsSecretRef: {name: all}\n  hashKeySecretRef: {name: key}\n  namespaceCredentials: [{namespace: pay, secretRef: {name: own}}]\n"), nil,
			[]string{
				"f.yaml:9: spec.credentialsSecretRef: RedisBackend shop/default needs Secret shop/all, which none of the files holds",
				"f.yaml:10: spec.hashKeySecretRef: RedisBackend shop/default needs Secret shop/key, which none of the files holds",
				"f.yaml:11: spec.namespaceCredentials: RedisBackend shop/default needs Secret shop/own, which none of the files holds",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			logins, problems := Logins(objects(t, test.text))
			var got, gotProblems []string
			for _, l := range logins {
				got = append(got, fmt.Sprintf("%s %q as %q for %v", l.Backend, l.Secret, l.config.Username, l.probe.Namespaces))
			}
			for _, p := range problems {
				gotProblems = append(gotProblems, p.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.wantProblems, gotProblems); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoginsAreChecked(t *testing.T) {
	server := redistest.Start(t)
	logins, _ := Logins(objects(t, backendText("default", server.Addr(), "  keyPrefix: prod\n")))
	if r := logins[0].Check(t.Context()); r.Fault != "" {
		t.Error(r.Message())
	}
	if keys := server.Client().Keys(t.Context(), "prod:{weir-probe}:shop/*").Val(); len(keys) == 0 {
		t.Error("nothing was counted under the backend's prefix")
	}
}
