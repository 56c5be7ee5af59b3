package standalone

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
)

func objects(t *testing.T, text string) *filesource.Objects {
	t.Helper()
	o, problems := filesource.Parse([]filesource.File{{Name: "f.yaml", Data: []byte(text)}})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return o
}

func parse(t *testing.T, redis string) *Redis {
	t.Helper()
	r, err := ParseRedis(redis)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const secretText = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: redis, namespace: shop}\n"

func TestReferencesThatLeadNowhere(t *testing.T) {
	elsewhere := func(allowed string) string {
		return strings.Replace(backendText("shared", "127.0.0.1:6379", allowed), "namespace: shop", "namespace: weir-system", 1)
	}
	toShared := policyText("storefront", 1, "  redisRef: {name: shared, namespace: weir-system}\n")
	plain := policyText("storefront", 1, "")
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"no backend of that name": {
			toShared + backendText("default", "127.0.0.1:6379", ""),
			[]string{"f.yaml:6: spec.redisRef: policy shop/storefront: redisRef names RedisBackend weir-system/shared, which none of the files holds; known: shop/default"},
		},
		"no default backend": {
			plain,
			[]string{"f.yaml:4: spec: policy shop/storefront has no redisRef, and none of the files holds RedisBackend shop/default, the default; known: none"},
		},
		"a backend is for its own namespace": {
			toShared + elsewhere(""),
			[]string{"f.yaml:6: spec.redisRef: policy shop/storefront: RedisBackend weir-system/shared does not permit policies of namespace shop; see its spec.allowedNamespaces in f.yaml:13"},
		},
		"a backend is for namespaces of another name": {
			toShared + elsewhere("  allowedNamespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: other}}}\n"),
			[]string{"f.yaml:6: spec.redisRef: policy shop/storefront: RedisBackend weir-system/shared does not permit policies of namespace shop; see its spec.allowedNamespaces in f.yaml:13"},
		},
		"a backend is for all":                     {toShared + elsewhere("  allowedNamespaces: {from: All}\n"), nil},
		"a backend is for namespaces of that name": {toShared + elsewhere("  allowedNamespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}\n"), nil},
		"a backend is for namespaces but some":     {toShared + elsewhere("  allowedNamespaces: {from: Selector, selector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [other]}]}}\n"), nil},
		"no Secret for the Sentinels": {
			plain + sentinelText("credentialsSecretRef: {name: watchers}"),
			[]string{"f.yaml:19: spec.sentinel.credentialsSecretRef: RedisBackend shop/default needs Secret shop/watchers, which none of the files holds"},
		},
		"no password for the Sentinels": {
			plain + sentinelText("credentialsSecretRef: {name: redis}") + secretText + "stringData: {username: watcher}\n",
			[]string{"f.yaml:21: Secret shop/redis has no value for password, which RedisBackend shop/default needs"},
		},
		"Sentinels that ask for no password": {plain + sentinelText(""), nil},
		"a backend that nobody uses may lack what it likes": {
			plain + backendText("default", "127.0.0.1:6379", "") + backendText("other", "127.0.0.1:6379", "  credentialsSecretRef: {name: nothing}\n"), nil,
		},
		"no Secret": {
			plain + plainOf("other", plain) + backendText("default", "127.0.0.1:6379", "  credentialsSecretRef: {name: redis}\n"),
			[]string{"f.yaml:30: spec.credentialsSecretRef: RedisBackend shop/default needs Secret shop/redis, which none of the files holds"},
		},
		"no password in it": {
			plain + backendText("default", "127.0.0.1:6379", "  credentialsSecretRef: {name: redis}\n") + secretText + "stringData: {username: weir}\n",
			[]string{"f.yaml:21: Secret shop/redis has no value for password, which RedisBackend shop/default needs"},
		},
		"no Secret for the namespace": {
			plain + backendText("default", "127.0.0.1:6379", "  namespaceCredentials: [{namespace: shop, secretRef: {name: own}}]\n"),
			[]string{"f.yaml:19: spec.namespaceCredentials: RedisBackend shop/default needs Secret shop/own, which none of the files holds"},
		},
		"no hash key": {
			plain + backendText("default", "127.0.0.1:6379", "  hashKeySecretRef: {name: redis}\n") + secretText,
			[]string{"f.yaml:21: Secret shop/redis has no value for key, which RedisBackend shop/default needs"},
		},
		"no authority": {
			plain + backendText("default", "127.0.0.1:6379", "  tls: {caConfigMapRef: {name: ca}}\n"),
			[]string{"f.yaml:19: spec.tls.caConfigMapRef: RedisBackend shop/default needs ConfigMap shop/ca, which none of the files holds"},
		},
		"an authority that is none, and no certificate of our own": {
			plain + backendText("default", "127.0.0.1:6379", "  tls: {caSecretRef: {name: redis}, certSecretRef: {name: redis}}\n") + secretText + "stringData: {ca.crt: x, tls.crt: x, tls.key: x}\n",
			[]string{
				"f.yaml:19: spec.tls: ca.crt holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----",
				"f.yaml:19: spec.tls.certSecretRef: tls.crt and tls.key of Secret shop/redis are no certificate and its key in PEM form",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Check(objects(t, test.text)) {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// plainOf is a policy again as a document of another name.
func plainOf(name, text string) string {
	return "---\n" + strings.Replace(text, "storefront", name, 1)
}

func TestTargetSaysAllThatABackendDoes(t *testing.T) {
	certificate, key := selfSigned(t)
	indent := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") }
	text := policyText("storefront", 1, "") + `---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: default, namespace: shop}
spec:
  mode: Standalone
  addresses: ["[::1]:6380"]
  database: 3
  poolSize: 5
  keyPrefix: prod
  timeouts: {dial: 2s, decision: 20ms}
  credentialsSecretRef: {name: all}
  namespaceCredentials: [{namespace: shop, secretRef: {name: redis}}]
  hashKeySecretRef: {name: redis}
  tls: {caSecretRef: {name: redis}, certSecretRef: {name: redis}}
` + secretText + "stringData:\n  username: weir\n  password: pass\n  key: hash\n  ca.crt: |\n    " + indent(certificate) +
		"\n  tls.crt: |\n    " + indent(certificate) + "\n  tls.key: |\n    " + indent(key) + "\n"
	targets, problems := resolve(objects(t, text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	got := targets[0]
	c := got.Config
	if c.Addresses[0] != "[::1]:6380" || c.Database != 3 || c.PoolSize != 5 || c.DialTimeout != 2*time.Second || c.Timeout != 20*time.Millisecond ||
		c.Username != "weir" || c.Password != "pass" || got.Budget != 20*time.Millisecond || got.KeyPrefix != "prod" || string(got.HashKey) != "hash" {
		t.Errorf("the target is %+v", got)
	}
	if c.Mode != v1alpha1.RedisStandalone || c.TLS.ServerName != "" || c.TLS.RootCAs == nil || len(c.TLS.Certificates) != 1 || c.TLS.InsecureSkipVerify {
		t.Errorf("TLS is %+v", c.TLS)
	}
	same, _ := resolve(objects(t, text+"# a comment\n"))
	if same[0].Identity() != got.Identity() {
		t.Error("a comment makes it another target")
	}
	for reason, change := range map[string][2]string{
		"another password":           {"password: pass", "password: other"},
		"another address":            {"6380", "6381"},
		"another database":           {"database: 3", "database: 4"},
		"another name of the server": {"tls: {", "tls: {serverName: redis, "},
	} {
		other, _ := resolve(objects(t, strings.Replace(text, change[0], change[1], 1)))
		if other[0].Identity() == got.Identity() {
			t.Errorf("%s does not make it another target", reason)
		}
	}
}

// sentinelText is a backend behind Sentinels.
func sentinelText(more string) string {
	if more != "" {
		more = ", " + more
	}
	text := backendText("default", "127.0.0.1:26379", "  sentinel: {masterName: main"+more+"}\n")
	return strings.Replace(text, "Standalone", "Sentinel", 1)
}

func TestTargetOfSentinels(t *testing.T) {
	text := policyText("storefront", 1, "") + `---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: default, namespace: shop}
spec:
  mode: Sentinel
  addresses: ["a:26379", "b:26379"]
  database: 2
  sentinel: {masterName: main, credentialsSecretRef: {name: watchers}}
  credentialsSecretRef: {name: redis}
  tls: {serverName: redis.example.com}
` + secretText + "stringData: {username: weir, password: data}\n" +
		strings.Replace(secretText, "redis", "watchers", 1) + "stringData: {username: watcher, password: watch}\n"
	got := onlyTarget(t, text)
	want := redisstore.Config{
		Mode: v1alpha1.RedisSentinel, Addresses: []string{"a:26379", "b:26379"}, Database: 2,
		Sentinel: redisstore.Sentinel{Master: "main", Username: "watcher", Password: "watch"},
		Username: "weir", Password: "data",
		DialTimeout: time.Second, Timeout: 50 * time.Millisecond, PoolSize: 16,
	}
	if got.Config.TLS == nil || got.Config.TLS.ServerName != "redis.example.com" {
		t.Errorf("TLS is %+v", got.Config.TLS)
	}
	if diff := cmp.Diff(want, got.Config, cmpopts.IgnoreFields(redisstore.Config{}, "TLS")); diff != "" {
		t.Error(diff)
	}
	for reason, change := range map[string][2]string{
		"another name of the primary":  {"masterName: main", "masterName: other"},
		"another user of Sentinels":    {"username: watcher", "username: other"},
		"another Sentinels' password":  {"password: watch", "password: other"},
		"one Sentinel more":            {`"b:26379"`, `"b:26379", "c:26379"`},
		"the Sentinels as the servers": {"mode: Sentinel\n  addresses: [\"a:26379\", \"b:26379\"]\n  database: 2\n  sentinel: {masterName: main, credentialsSecretRef: {name: watchers}}", "mode: Cluster\n  addresses: [\"a:26379\", \"b:26379\"]"},
	} {
		if onlyTarget(t, strings.Replace(text, change[0], change[1], 1)).Identity() == got.Identity() {
			t.Errorf("%s does not make it another target", reason)
		}
	}
}

func TestTargetOfACluster(t *testing.T) {
	text := policyText("storefront", 1, "") + strings.Replace(
		backendText("default", "a:6379", ""), `mode: Standalone`, `mode: Cluster`, 1)
	got := onlyTarget(t, strings.Replace(text, `"a:6379"`, `"a:6379", "b:6379"`, 1)).Config
	if got.Mode != v1alpha1.RedisCluster || !slices.Equal(got.Addresses, []string{"a:6379", "b:6379"}) {
		t.Errorf("the target is %+v", got)
	}
}

// onlyTarget is the target of files with one policy.
func onlyTarget(t *testing.T, text string) *backends.Target {
	t.Helper()
	targets, problems := resolve(objects(t, text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return targets[0]
}

func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestParseRedis(t *testing.T) {
	for text, want := range map[string]string{
		"redis://127.0.0.1":                   "127.0.0.1:6379 0   false",
		"redis://[::1]:7000/2":                "[::1]:7000 2   false",
		"redis://:pass@host":                  "host:6379 0  pass false",
		"rediss://weir:p%40ss%2F@host:6380/1": "host:6380 1 weir p@ss/ true",
		"redis://host:1/":                     "host:1 0   false",
	} {
		t.Run(text, func(t *testing.T) {
			c := parse(t, text).target.Config
			if got := strings.Join([]string{c.Addresses[0], string('0' + rune(c.Database)), c.Username, c.Password, map[bool]string{true: "true", false: "false"}[c.TLS != nil]}, " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
