package standalone

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/enforcer/enforcement"
)

func TestDebugPageIsForThisMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, policyText("storefront", 10, "  domain: front\n  exempt: [{name: probes, match: {methods: [HEAD]}}]\n"))
	r := start(t, Config{Policies: []string{path}, Redis: parse(t, "redis://weir:pass@127.0.0.1:1/3")})
	for peer, want := range map[string]int{
		"127.0.0.1:1": http.StatusOK, "[::1]:1": http.StatusOK, "[::ffff:127.0.0.1]:1": http.StatusOK,
		"192.0.2.1:1": http.StatusForbidden, "10.0.0.1:1": http.StatusForbidden, "@": http.StatusForbidden,
	} {
		request := httptest.NewRequest(http.MethodGet, "/debug/policies", nil)
		request.RemoteAddr = peer
		request.Header.Set("X-Forwarded-For", "127.0.0.1")
		answer := httptest.NewRecorder()
		r.Admin().ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("%s gets %d, want %d", peer, answer.Code, want)
		}
	}
	var got []enforcement.PolicyView
	if err := json.Unmarshal([]byte(r.page(t, "/debug/policies")), &got); err != nil {
		t.Fatal(err)
	}
	want := []enforcement.PolicyView{{
		Policy: "shop/storefront", Source: path + ":1", Domain: "front", Mode: "Enforce", FailureMode: "Allow",
		Backend: enforcement.BackendView{Name: "flags/redis", Mode: "Standalone", Addresses: []string{"127.0.0.1:1"}, Database: 3, KeyPrefix: "rl", Budget: "50ms"},
		Exempt:  []string{"probes"},
		Rules:   []enforcement.RuleView{{Rule: "per-user", Limit: 10, Window: "8784h0m0s", Key: "Header X-User-Id"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := r.page(t, "/healthz"); got != "ok\n" {
		t.Errorf("healthz says %q", got)
	}
}

func TestReadyWithoutARedis(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, policyText("storefront", 0, ""))
	r := start(t, Config{Policies: []string{path}, Redis: parse(t, "redis://127.0.0.1:1")})
	if response := r.get(t, "/"); response.StatusCode != http.StatusOK || response.Header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("without a Redis: %s, %v", response.Status, response.Header)
	}
	if got := r.page(t, "/readyz"); got != "ok\n" {
		t.Errorf("readyz says %q", got)
	}
}
