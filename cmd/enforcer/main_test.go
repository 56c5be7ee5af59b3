package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	redistest "github.com/weir-dev/weir/test/redis"
)

// run runs a command line and returns what it printed.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandLines(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: weir.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: x}\nspec: {selector: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	usage := usageError{}
	for _, c := range []struct {
		reason string
		args   []string
		want   string
		as     func(error) bool
	}{
		{"help teaches", []string{"standalone", "--help"}, "enforcer standalone --policies policies/", func(err error) bool { return err == nil }},
		{"good files are counted", []string{"validate", "../../config/samples/quickstart"}, "1 policies, 1 backends: ok", func(err error) bool { return err == nil }},
		{"bad files are named", []string{"validate", bad}, bad + ":4: spec.rules: ", func(err error) bool { return errors.Is(err, errInvalid) }},
		{"files that are not there are named", []string{"validate", "nowhere.yaml"}, "nowhere.yaml", func(err error) bool { return errors.Is(err, errInvalid) }},
		{"no files", []string{"validate"}, "", func(err error) bool { return errors.As(err, &usage) }},
		{"no policies", []string{"standalone", "--upstream", "http://127.0.0.1:1"}, "", func(err error) bool { return errors.As(err, &usage) }},
		{"no upstream", []string{"standalone", "--policies", bad}, "", func(err error) bool { return errors.As(err, &usage) }},
		{"a wrong level", []string{"standalone", "--log-level", "loud"}, "", func(err error) bool { return errors.As(err, &usage) }},
		{"a wrong range", []string{"standalone", "--policies", bad, "--upstream", "http://127.0.0.1:1", "--trusted-proxies", "ten"}, "", func(err error) bool { return errors.As(err, &usage) }},
		{"an unknown flag", []string{"standalone", "--polices", bad}, "", func(err error) bool { return errors.As(err, &usage) }},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out, err := run(t, c.args...)
			if !c.as(err) || !strings.Contains(out, c.want) {
				t.Errorf("error %v, output:\n%s", err, out)
			}
		})
	}
}

// free is a loopback address that nothing listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// get sends a request and returns the answer and its body.
func get(t *testing.T, url, user string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-User-Id", user)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

const dayPolicy = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: storefront, namespace: shop}
spec:
  selector: {}
  redisRef: {name: here}
  rules:
  - {name: per-user, limit: 100, window: 366d, key: [{type: Header, name: X-User-Id}]}
---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: here, namespace: shop}
spec: {mode: Standalone, addresses: ["%s"], timeouts: {decision: 5s, dial: 5s}}
`

func TestStandaloneLimitsAnApplication(t *testing.T) {
	redis := redistest.Start(t)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(app.Close)
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(policies, fmt.Appendf(nil, dayPolicy, redis.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, admin := free(t), free(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- runStandalone(ctx, options{policies: []string{policies}, upstream: app.URL, listen: listen, adminListen: admin,
			logLevel: "error", logFormat: "text", drainTimeout: 10 * time.Second})
	}()
	await(t, func() bool {
		resp, _ := get(t, "http://"+admin+"/readyz", "")
		return resp != nil && resp.StatusCode == http.StatusOK
	})

	answers := map[int]int{}
	for range 105 {
		resp, _ := get(t, "http://"+listen+"/", "bob")
		answers[resp.StatusCode]++
	}
	if answers[http.StatusOK] != 100 || answers[http.StatusTooManyRequests] != 5 {
		t.Errorf("answers %v, want 100 times 200 and 5 times 429", answers)
	}
	key := fmt.Sprint("rl:{bob}:shop/storefront/per-user:31622400:", time.Now().Unix()/31622400)
	if got := redis.Client().Get(t.Context(), key).Val(); got != "105" {
		t.Errorf("%s holds %q, want 105", key, got)
	}
	checkDenial(t, "http://"+listen+"/")
	if resp, body := get(t, "http://"+admin+"/debug/policies", ""); resp.StatusCode != http.StatusOK || !strings.Contains(body, "shop/storefront") {
		t.Errorf("debug page: %s", body)
	}
	if _, body := get(t, "http://"+admin+"/metrics", ""); !strings.Contains(body, `weir_decisions_total{outcome="denied",policy="shop/storefront",rule="per-user"} 6`) {
		t.Errorf("metrics do not count the denials:\n%s", body)
	}
	raise(t, policies, redis.Addr())
	await(t, func() bool { resp, _ := get(t, "http://"+listen+"/", "bob"); return resp.StatusCode == http.StatusOK })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// raise raises the limit in the file.
func raise(t *testing.T, path, redis string) {
	t.Helper()
	content := strings.Replace(fmt.Sprintf(dayPolicy, redis), "limit: 100", "limit: 100000", 1)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkDenial checks the whole answer of a denied request.
func checkDenial(t *testing.T, url string) {
	t.Helper()
	resp, body := get(t, url, "bob")
	for name, want := range map[string]string{
		"Content-Type": "application/problem+json", "Cache-Control": "no-store", "X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0",
		"RateLimit-Policy": `"per-user";q=100;w=31622400`,
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"Retry-After", "X-RateLimit-Reset", "RateLimit"} {
		if resp.Header.Get(name) == "" {
			t.Errorf("%s is missing", name)
		}
	}
	var problem map[string]any
	if err := json.Unmarshal([]byte(body), &problem); err != nil {
		t.Fatal(err)
	}
	for member, want := range map[string]any{
		"error": "rate limit exceeded", "type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Too Many Requests",
		"status": float64(429), "policy": "shop/storefront", "rule": "per-user",
	} {
		if problem[member] != want {
			t.Errorf("%s: %v, want %v", member, problem[member], want)
		}
	}
	if fmt.Sprint(problem["retry_after"]) == "0" || fmt.Sprint(problem["violated-policies"]) != "[per-user]" {
		t.Errorf("body %s", body)
	}
}

// await waits for a condition.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatal("it does not come to pass")
		case <-tick.C:
		}
	}
}
