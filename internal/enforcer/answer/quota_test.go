package answer

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
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

// TestApplicationsHeadersGiveWayOnce is about an application that limits, too.
func TestApplicationsHeadersGiveWayOnce(t *testing.T) {
	theirLegacy := map[string]string{"X-Ratelimit-Limit": "7|8", "X-Ratelimit-Remaining": "7"}
	theirStandard := map[string]string{"Ratelimit": "theirs", "Ratelimit-Policy": "theirs"}
	legacy := map[string]string{"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "42", "X-RateLimit-Reset": "1796076018"}
	standard := map[string]string{"RateLimit-Policy": `"per-user";q=100;w=60`, "RateLimit": `"per-user";r=42;t=18`}
	for _, c := range []struct {
		reason, options string
		want            []map[string]string
	}{
		{"both families to Weir's", "", []map[string]string{legacy, standard}},
		{"its standard headers stay beside Weir's legacy ones", "response: {headers: [Legacy]},", []map[string]string{legacy, theirStandard}},
		{"its legacy headers stay beside Weir's standard ones", "response: {headers: [Standard]},", []map[string]string{theirLegacy, standard}},
		{"none to a policy without headers", "response: {headers: []},", []map[string]string{theirLegacy, theirStandard}},
		{"none where nothing was counted", "mode: Disabled,", []map[string]string{theirLegacy, theirStandard}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			user, _ := storefront(t, c.options)
			d := allowed()
			if user.Policy.Mode != v1alpha1.ModeDisabled {
				d = allowed(limiter.Quota{Rule: user, Remaining: 42, Reset: userReset, Wait: 18})
			}
			h := http.Header{}
			for _, field := range [][2]string{{"X-RateLimit-Limit", "7"}, {"X-RateLimit-Limit", "8"}, {"X-RateLimit-Remaining", "7"},
				{"RateLimit", "theirs"}, {"RateLimit-Policy", "theirs"}, {"X-Other", "kept"}} {
				h.Add(field[0], field[1])
			}
			SetHeaders(h, d)
			expected := map[string]string{"X-Other": "kept"}
			for _, family := range c.want {
				maps.Copy(expected, family)
			}
			want(t, "headers", written(h), expected)
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

// TestAnswersThatPassAllocateLittle counts for every request: the text of all
// values, the list of them, and the scratch space of the writer.
func TestAnswersThatPassAllocateLittle(t *testing.T) {
	user, day := storefront(t, "")
	d := allowed(limiter.Quota{Rule: user, Remaining: 42, Reset: userReset, Wait: 18}, limiter.Quota{Rule: day, Remaining: 9, Reset: dayReset, Wait: 99})
	h := http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"1"}, "Date": {"now"}}
	request := http.Header{"Origin": {"https://a.example"}}
	Annotate(h, request, d)
	if n := testing.AllocsPerRun(100, func() { Annotate(h, request, d) }); n > 3 {
		t.Errorf("Annotate allocates %v times, want 3 at most", n)
	}
}
