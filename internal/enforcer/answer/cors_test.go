package answer

import (
	"net/http"
	"testing"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

const (
	siteA = "https://a.example"
	siteB = "https://b.example"
	onlyA = `response: {cors: {allowOrigins: ["https://a.example"]}},`
	all   = `response: {cors: {allowOrigins: ["*"]}},`
	mixed = `response: {cors: {allowOrigins: ["*", "https://a.example"]}},`

	legacyNames   = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
	standardNames = "RateLimit-Policy, RateLimit"
)

// from is a request of a script of that origin.
func from(origin string) http.Header {
	h := http.Header{}
	if origin != "" {
		h.Set("Origin", origin)
	}
	return h
}

func TestScriptsMayReadRefusals(t *testing.T) {
	const exposes = legacyNames + ", " + standardNames + ", Retry-After"
	for _, c := range []struct {
		reason, options, origin                string
		vary, allowOrigin, credentials, expose string
	}{
		{"not unless configured", "", siteA, "", "", "", ""},
		{"a listed origin, with credentials", onlyA, siteA, "Origin", siteA, "true", exposes},
		{"another origin", onlyA, siteB, "Origin", "", "", ""},
		{"no origin", onlyA, "", "Origin", "", "", ""},
		{"everyone, without credentials", all, siteB, "", "*", "", exposes},
		{"everyone, and one by name", mixed, siteB, "Origin", "*", "", exposes},
		{"the one by name", mixed, siteA, "Origin", siteA, "true", exposes},
		{"a star is no origin", all, "*", "", "*", "", exposes},
	} {
		t.Run(c.reason, func(t *testing.T) {
			user, _ := storefront(t, c.options)
			for _, d := range []*limiter.Decision{denied(user), {Outcome: limiter.Unavailable, Cause: user, RetryAfter: 1}, {Outcome: limiter.KeyMissing, Cause: user}} {
				h := refuse(d, http.MethodGet, from(c.origin)).Header()
				want(t, "Vary", h.Get("Vary"), c.vary)
				want(t, "Access-Control-Allow-Origin", h.Get("Access-Control-Allow-Origin"), c.allowOrigin)
				want(t, "Access-Control-Allow-Credentials", h.Get("Access-Control-Allow-Credentials"), c.credentials)
				want(t, "Access-Control-Expose-Headers", h.Get("Access-Control-Expose-Headers"), c.expose)
			}
		})
	}
}

func TestScriptsMayReadQuotas(t *testing.T) {
	const both = legacyNames + ", " + standardNames
	for _, c := range []struct {
		reason, options, origin string
		sent                    []string // by the application
		want                    string
	}{
		{"not unless configured", "", siteA, []string{"X-Total"}, "X-Total"},
		{"a listed origin", onlyA, siteA, nil, both},
		{"everyone", all, siteB, nil, both},
		{"another origin", onlyA, siteB, []string{"X-Total"}, "X-Total"},
		{"no origin", onlyA, "", nil, ""},
		{"beside what the application exposes", onlyA, siteA, []string{"X-Total,ETag", "X-Page"}, "X-Total, ETag, X-Page, " + both},
		{"each once", onlyA, siteA, []string{"x-ratelimit-reset, ratelimit"}, "x-ratelimit-reset, ratelimit, X-RateLimit-Limit, X-RateLimit-Remaining, RateLimit-Policy"},
		{"beside a star, which means nothing with credentials", onlyA, siteA, []string{"*"}, "*, " + both},
		{"the legacy family alone", `response: {headers: [Legacy], cors: {allowOrigins: ["*"]}},`, siteA, nil, legacyNames},
		{"the standard family alone", `response: {headers: [Standard], cors: {allowOrigins: ["*"]}},`, siteA, nil, standardNames},
		{"nothing where there are no headers", `response: {headers: [], cors: {allowOrigins: ["*"]}},`, siteA, []string{"X-Total"}, "X-Total"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			user, _ := storefront(t, c.options)
			h := http.Header{"Access-Control-Allow-Origin": {"the application's"}}
			for _, line := range c.sent {
				h.Add("Access-Control-Expose-Headers", line)
			}
			Annotate(h, from(c.origin), allowed(limiter.Quota{Rule: user, Remaining: 42, Reset: userReset, Wait: 18}))
			want(t, "Access-Control-Expose-Headers", written(h)["Access-Control-Expose-Headers"], c.want)
			want(t, "Access-Control-Allow-Origin", written(h)["Access-Control-Allow-Origin"], "the application's")
			want(t, "Vary", h.Get("Vary"), "")
			want(t, "Access-Control-Allow-Credentials", h.Get("Access-Control-Allow-Credentials"), "")
		})
	}
}

// TestScriptsSeeWhatTheirPoliciesShow has two policies on one request.
func TestScriptsSeeWhatTheirPoliciesShow(t *testing.T) {
	r := rules(t, `{metadata: {namespace: shop, name: a}, spec: {selector: {}, response: {headers: [Legacy], cors: {allowOrigins: ["https://a.example"]}}, rules: [{name: x, limit: 5, window: 1m}]}}`,
		`{metadata: {namespace: shop, name: b}, spec: {selector: {}, response: {headers: [Standard], cors: {allowOrigins: ["https://b.example"]}}, rules: [{name: other, limit: 5, window: 1m}]}}`)
	d := allowed(limiter.Quota{Rule: r[0], Wait: 1}, limiter.Quota{Rule: r[1], Wait: 1})
	for origin, expected := range map[string]string{siteA: legacyNames, siteB: standardNames, "https://c.example": ""} {
		h := http.Header{}
		Annotate(h, from(origin), d)
		want(t, "exposed to "+origin, h.Get("Access-Control-Expose-Headers"), expected)
	}
}
