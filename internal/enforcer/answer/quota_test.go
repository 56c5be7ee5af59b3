package answer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

func TestQuotaHeaders(t *testing.T) {
	both := map[string]string{
		"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "42", "X-RateLimit-Reset": "1796076018",
		"RateLimit-Policy": `"per-user";q=100;w=60, "per-day";q=1000;w=86400`,
		"RateLimit":        `"per-user";r=42;t=18, "per-day";r=900;t=7200`,
	}
	legacy := map[string]string{"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "42", "X-RateLimit-Reset": "1796076018"}
	for _, c := range []struct {
		reason, options string
		want            map[string]string
	}{
		{"both families unless told otherwise", "", both},
		{"legacy alone", "response: {headers: [Legacy]},", legacy},
		{"standard alone", "response: {headers: [Standard]},", map[string]string{"RateLimit-Policy": both["RateLimit-Policy"], "RateLimit": both["RateLimit"]}},
		{"none", "response: {headers: []},", nil},
		{"names are hidden", "response: {detail: Minimal},", map[string]string{
			"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "42", "X-RateLimit-Reset": "1796076018",
			"RateLimit-Policy": `"r1";q=100;w=60, "r2";q=1000;w=86400`,
			"RateLimit":        `"r1";r=42;t=18, "r2";r=900;t=7200`,
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			user, day := storefront(t, c.options)
			d := allowed(limiter.Quota{Rule: user, Remaining: 42, Reset: userReset, Wait: 18},
				limiter.Quota{Rule: day, Remaining: 900, Reset: dayReset, Wait: 7200})
			h := http.Header{}
			SetHeaders(h, d)
			want(t, "headers", written(h), c.want)
			SetHeaders(h, d)
			want(t, "headers written again", written(h), c.want)
		})
	}
}

func TestApplicationsHeadersGiveWayOnce(t *testing.T) {
	user, _ := storefront(t, "")
	silent, _ := storefront(t, "response: {headers: []},")
	for _, c := range []struct {
		reason string
		d      *limiter.Decision
		want   map[string]string
	}{
		{"to Weir's", allowed(limiter.Quota{Rule: user, Remaining: 42, Reset: userReset, Wait: 18}), map[string]string{
			"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "42", "X-RateLimit-Reset": "1796076018",
			"RateLimit-Policy": `"per-user";q=100;w=60`, "RateLimit": `"per-user";r=42;t=18`, "X-Other": "kept"}},
		{"not to a policy without headers", allowed(limiter.Quota{Rule: silent}), map[string]string{
			"X-Ratelimit-Limit": "7|8", "X-Ratelimit-Remaining": "7", "Ratelimit": "theirs", "X-Other": "kept"}},
		{"not where nothing was counted", allowed(), map[string]string{
			"X-Ratelimit-Limit": "7|8", "X-Ratelimit-Remaining": "7", "Ratelimit": "theirs", "X-Other": "kept"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h := http.Header{}
			h.Add("X-RateLimit-Limit", "7")
			h.Add("X-RateLimit-Limit", "8")
			h.Add("X-RateLimit-Remaining", "7")
			h.Add("RateLimit", "theirs")
			h.Add("X-Other", "kept")
			SetHeaders(h, c.d)
			want(t, "headers", written(h), c.want)
		})
	}
}

// TestLegacyHeadersShowTheTightest is about several limits.
func TestLegacyHeadersShowTheTightest(t *testing.T) {
	user, day := storefront(t, "")
	for _, c := range []struct {
		reason    string
		user, day limiter.Quota
		want      string // limit
	}{
		{"the least remaining", limiter.Quota{Remaining: 9, Wait: 18}, limiter.Quota{Remaining: 3, Wait: 7200}, "1000"},
		{"the first rule's", limiter.Quota{Remaining: 3, Wait: 18}, limiter.Quota{Remaining: 9, Wait: 7200}, "100"},
		{"of two that are used up, the one that denied", limiter.Quota{Wait: 18, Over: true}, limiter.Quota{Wait: 7200}, "100"},
		{"of two that denied, the one that lasts", limiter.Quota{Wait: 18, Over: true}, limiter.Quota{Wait: 7200, Over: true}, "1000"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.user.Rule, c.day.Rule = user, day
			h := http.Header{}
			SetHeaders(h, allowed(c.user, c.day))
			want(t, "limit", written(h)["X-RateLimit-Limit"], c.want)
		})
	}
}

func TestItemsAreNamedApart(t *testing.T) {
	text := func(namespace, name, rule string) string {
		return fmt.Sprintf(`{metadata: {namespace: %s, name: %s}, spec: {selector: {}, rules: [{name: %s, limit: 5, window: 1m}]}}`, namespace, name, rule)
	}
	for _, c := range []struct {
		reason   string
		policies []string
		want     string
	}{
		{"different rules", []string{text("shop", "a", "x"), text("shop", "b", "z")}, `"x";r=0;t=1, "z";r=0;t=1`},
		{"two policies with a rule of one name", []string{text("shop", "a", "x"), text("shop", "b", "x"), text("shop", "c", "z")}, `"a.x";r=0;t=1, "b.x";r=0;t=1, "z";r=0;t=1`},
		{"policies of one name in two namespaces", []string{text("shop", "a", "x"), text("stock", "a", "x")}, `"shop/a.x";r=0;t=1, "stock/a.x";r=0;t=1`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			d := &limiter.Decision{}
			for _, rule := range rules(t, c.policies...) {
				d.Quotas = append(d.Quotas, limiter.Quota{Rule: rule, Wait: 1})
			}
			h := http.Header{}
			SetHeaders(h, d)
			want(t, "items", written(h)["RateLimit"], c.want)
		})
	}
}

func TestAtMostTenItems(t *testing.T) {
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "{name: r%d, limit: 100, window: 1m}, ", i)
	}
	d := &limiter.Decision{}
	for i, rule := range rules(t, `{metadata: {namespace: shop, name: p}, spec: {selector: {}, rules: [`+text.String()+`]}}`) {
		d.Quotas = append(d.Quotas, limiter.Quota{Rule: rule, Remaining: int64(50 - i), Wait: 1})
	}
	h := http.Header{}
	SetHeaders(h, d)
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		items := strings.Split(written(h)[name], ", ")
		if len(items) != 10 || !strings.HasPrefix(items[0], `"r2"`) || !strings.HasPrefix(items[9], `"r11"`) {
			t.Errorf("%s lists %q, want the ten with the least left", name, items)
		}
	}
}

// TestLargeLimitsStayInStructuredFields is RFC 9651 section 3.3.1.
func TestLargeLimitsStayInStructuredFields(t *testing.T) {
	rule := rules(t, `{metadata: {namespace: shop, name: p}, spec: {selector: {}, rules: [{name: r, limit: 9007199254740991, window: 1m}]}}`)[0]
	h := http.Header{}
	SetHeaders(h, allowed(limiter.Quota{Rule: rule, Remaining: 9007199254740990, Wait: 1}))
	want(t, "policy", written(h)["RateLimit-Policy"], `"r";q=999999999999999;w=60`)
	want(t, "legacy limit", written(h)["X-RateLimit-Limit"], "9007199254740991")
}

func TestSetHeadersAllocatesLittle(t *testing.T) {
	user, day := storefront(t, "")
	d := allowed(limiter.Quota{Rule: user, Remaining: 42, Reset: userReset, Wait: 18}, limiter.Quota{Rule: day, Remaining: 9, Reset: dayReset, Wait: 99})
	h := http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"1"}, "Date": {"now"}}
	SetHeaders(h, d)
	if n := testing.AllocsPerRun(100, func() { SetHeaders(h, d) }); n > 4 {
		t.Errorf("SetHeaders allocates %v times, want 4 at most", n)
	}
}
