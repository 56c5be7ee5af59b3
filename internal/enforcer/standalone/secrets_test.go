package standalone

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	redistest "github.com/weir-dev/weir/test/redis"
)

// canary stands in every secret of this test.
const canary = "canary7291"

// TestSecretsAreToldToNobody is case I03.
func TestSecretsAreToldToNobody(t *testing.T) {
	redis := redistest.Start(t)
	redis.Client().Do(t.Context(), "ACL", "SETUSER", "weir", "on", ">"+canary, "~*", "+@all")
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	byToken := strings.Replace(policyText("storefront", 2, ""), "X-User-Id", "Authorization", 1)
	login := func(password string) string {
		return "---\napiVersion: v1\nkind: Secret\nmetadata: {name: redis, namespace: shop}\nstringData: {username: weir, password: " + password + ", key: " + canary + "-hash}\n"
	}
	refs := "  credentialsSecretRef: {name: redis}\n  hashKeySecretRef: {name: redis}\n"
	for name, test := range map[string]struct {
		files string
		redis string
		want  int // status of the third request
	}{
		"the right password":        {byToken + backendText("default", redis.Addr(), refs) + login(canary), "", http.StatusTooManyRequests},
		"a wrong password":          {byToken + backendText("default", redis.Addr(), refs) + login(canary+"-wrong"), "", http.StatusOK},
		"a wrong password in a URL": {byToken, "redis://weir:" + canary + "-wrong@" + redis.Addr() + "/0", http.StatusOK},
		"nobody listens":            {byToken + backendText("default", closed.Addr().String(), refs) + login(canary), "", http.StatusOK},
		"nobody listens at a URL":   {byToken, "redis://weir:" + canary + "@" + closed.Addr().String(), http.StatusOK},
		"no host of that name":      {byToken, "redis://weir:" + canary + "@redis.invalid:6379", http.StatusOK},
		"TLS to a server without":   {byToken, "rediss://weir:" + canary + "@" + redis.Addr(), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policies.yaml")
			write(t, path, test.files)
			config := Config{Policies: []string{path}}
			if test.redis != "" {
				config.Redis = parse(t, test.redis)
			}
			r := start(t, config)
			var status int
			for range 3 {
				status = r.get(t, "/", "Authorization", "Bearer "+canary).StatusCode
			}
			if status != test.want {
				t.Errorf("the third request gets %d, want %d", status, test.want)
			}
			r.edit(t, path, strings.Replace(test.files, "limit: 2", "limit: x", 1))
			for where, text := range map[string]string{
				"the log":         r.log.String(),
				"metrics":         r.page(t, "/metrics"),
				"debug page":      r.page(t, "/debug/policies"),
				"the key's names": strings.Join(redis.Client().Keys(t.Context(), "*").Val(), "\n"),
			} {
				if strings.Contains(text, canary) {
					t.Errorf("%s: %s", where, text)
				}
			}
		})
	}
}

func TestWrongRedisURLsShowNoPassword(t *testing.T) {
	for name, text := range map[string]string{
		"no scheme":       canary,
		"another scheme":  "http://weir:" + canary + "@host",
		"no host":         "redis://weir:" + canary + "@",
		"a bad port":      "redis://weir:" + canary + "@host:port",
		"port 0":          "redis://weir:" + canary + "@host:0",
		"a big port":      "redis://weir:" + canary + "@host:65536",
		"a bad database":  "redis://weir:" + canary + "@host/" + canary,
		"a query":         "redis://weir:" + canary + "@host/0?password=" + canary,
		"a bad escape":    "redis://weir:%zz" + canary + "@host",
		"a unix socket":   "unix:///" + canary,
		"a space":         "redis://weir:" + canary + " @host",
		"nothing of that": "Embedded",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseRedis(text); err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "redis://host:port") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
