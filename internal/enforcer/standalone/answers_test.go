package standalone

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	redistest "github.com/weir-dev/weir/test/redis"
)

// TestApplicationsFieldsStay has an application that speaks CORS and sends quota
// headers of a family that the policy leaves to it.
func TestApplicationsFieldsStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, policyText("storefront", 10, "  response: {headers: [Legacy], cors: {allowOrigins: ['https://shop.example']}}\n")+
		backendText("default", redistest.Start(t).Addr(), ""))
	app := application(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://elsewhere.example")
		w.Header().Set("Access-Control-Expose-Headers", "ETag")
		w.Header().Set("RateLimit", "theirs")
		_, _ = io.WriteString(w, "hello")
	})
	r := start(t, Config{Policies: []string{path}, Upstream: app})
	for origin, exposed := range map[string]string{
		"https://shop.example":  "ETag, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset",
		"https://other.example": "ETag",
	} {
		h := r.get(t, "/", "Origin", origin).Header
		got := []string{h.Get("Access-Control-Allow-Origin"), h.Get("Access-Control-Expose-Headers"), h.Get("RateLimit"), h.Get("X-RateLimit-Limit")}
		if diff := cmp.Diff([]string{"https://elsewhere.example", exposed, "theirs", "10"}, got); diff != "" {
			t.Errorf("an answer to %s: %s", origin, diff)
		}
	}
}

// TestFailuresAreCountedAndLoggedOnce has neither a Redis nor an application.
func TestFailuresAreCountedAndLoggedOnce(t *testing.T) {
	redis := redistest.Start(t)
	redis.Stop() // its port stays its own, so nobody listens there
	away := redis.Addr()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, policyText("storefront", 10, "  failureMode: Allow\n")+backendText("default", away, ""))
	r := start(t, Config{Policies: []string{path}, Upstream: &url.URL{Scheme: "http", Host: away}})
	const requests = 4 // so few that the circuit stays closed
	for range requests {
		if response := r.get(t, "/", "X-User-Id", "bob"); response.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("answered %s", response.Status)
		}
	}
	eventually(t, "no request is in flight", func() bool { return strings.Contains(r.page(t, "/metrics"), "weir_proxy_requests_in_flight 0\n") })
	page := r.page(t, "/metrics")
	for _, want := range []string{
		`weir_store_failures_total{backend="shop/default",kind="unreachable"} 4`,
		`weir_proxy_failures_total{kind="refused"} 4`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	text := r.log.String()
	if n := strings.Count(text, "backend=shop/default kind=unreachable failures="); n < 1 || n == requests {
		t.Errorf("%d lines for %d failures:\n%s", n, requests, text)
	}
	for _, secret := range []string{"bob", "rl:"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q:\n%s", secret, text)
		}
	}
}
