//go:build faults

package faults

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	redistest "github.com/weir-dev/weir/test/redis"
)

// manifests are what an enforcer's file says. The policy "steady" counts every
// request of a caller, and of it only the label changes.
type manifests struct {
	label int

	// Of the policy "edited".
	limit  int
	window time.Duration
	rules  int
	mode   v1alpha1.Mode
	// extra is how many policies there are beside.
	extra int

	// Of the backend.
	redisMode v1alpha1.RedisMode
	addresses []string
	decision  time.Duration
	database  int

	username, password string
	// watcher logs in to Sentinels, where there are some.
	watcher, watch string
	// certificates are the client's, and trusted the authorities of servers. nil
	// for no TLS.
	certificates *redistest.Certificates
	trusted      []byte
}

// standing is where edits begin: what every field but the servers' is at first.
// Decisions may take so long that a busy machine makes them in time.
func standing(addresses ...string) manifests {
	return manifests{
		limit: 1 << 30, window: time.Hour, rules: 1, mode: v1alpha1.ModeEnforce,
		redisMode: v1alpha1.RedisStandalone, addresses: addresses, decision: 800 * time.Millisecond,
	}
}

func (m *manifests) text() string {
	documents := []string{
		m.policy("steady", v1alpha1.ModeEnforce, fmt.Sprintf("{revision: r%d}", m.label), ruleText("all", 1<<40, 366*24*time.Hour)),
	}
	rules := make([]string, m.rules)
	for i := range rules {
		rules[i] = ruleText(fmt.Sprint("rule-", i), m.limit, m.window)
	}
	documents = append(documents, m.policy("edited", m.mode, "{}", rules...))
	for i := range m.extra {
		documents = append(documents, m.policy(fmt.Sprint("extra-", i), v1alpha1.ModeEnforce, "{}", ruleText("all", m.limit, m.window)))
	}
	documents = append(documents, m.backend())
	if m.username != "" {
		documents = append(documents, secretText("login", "username", m.username, "password", m.password))
	}
	if m.watcher != "" {
		documents = append(documents, secretText("watcher", "username", m.watcher, "password", m.watch))
	}
	if c := m.certificates; c != nil {
		documents = append(documents,
			secretText("authorities", "ca.crt", string(m.trusted)), secretText("own", "tls.crt", string(c.Client), "tls.key", string(c.ClientKey)))
	}
	return strings.Join(documents, "---\n")
}

func (m *manifests) policy(name string, mode v1alpha1.Mode, labels string, rules ...string) string {
	return fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: %s, namespace: shop, labels: %s}
spec:
  selector: {}
  mode: %s
  failureMode: Deny
  redisRef: {name: redis}
  rules: [%s]
`, name, labels, mode, strings.Join(rules, ", "))
}

func ruleText(name string, limit int, window time.Duration) string {
	return fmt.Sprintf("{name: %s, limit: %d, window: %.0fs, key: [{type: Header, name: X-User-Id}]}", name, limit, window.Seconds())
}

func (m *manifests) backend() string {
	text := fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: redis, namespace: shop}
spec:
  mode: %s
  addresses: ["%s"]
  database: %d
  timeouts: {dial: 5s, decision: %v}
`, m.redisMode, strings.Join(m.addresses, `", "`), m.database, m.decision)
	if m.username != "" {
		text += "  credentialsSecretRef: {name: login}\n"
	}
	switch {
	case m.watcher != "":
		text += fmt.Sprintf("  sentinel: {masterName: %s, credentialsSecretRef: {name: watcher}}\n", redistest.MasterName)
	case m.redisMode == v1alpha1.RedisSentinel:
		text += fmt.Sprintf("  sentinel: {masterName: %s}\n", redistest.MasterName)
	}
	if m.certificates != nil {
		text += "  tls: {caSecretRef: {name: authorities}, certSecretRef: {name: own}}\n"
	}
	return text
}

// secretText is a Secret of names and values.
func secretText(name string, data ...string) string {
	values := map[string]string{}
	for i := 0; i < len(data); i += 2 {
		values[data[i]] = data[i+1]
	}
	encoded, _ := json.Marshal(values) // of strings, which is YAML too
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: shop}\nstringData: %s\n", name, encoded)
}
