package answer

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// problem is the body of a refusal: problem details (RFC 9457), with the two
// members that clients of other limiters look for first.
type problem struct {
	Error      string   `json:"error"`
	RetryAfter int64    `json:"retry_after,omitempty"`
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Policy     string   `json:"policy,omitempty"`
	Rule       string   `json:"rule,omitempty"`
	Violated   []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// problemOf describes a refusal. Names are left out where the policy hides them.
func problemOf(d *limiter.Decision) problem {
	var p problem
	switch d.Outcome {
	case limiter.Denied:
		p = problem{Error: "rate limit exceeded", Type: problemTypes + "quota-exceeded", Status: http.StatusTooManyRequests}
	case limiter.KeyMissing:
		p = problem{Error: "what this request is counted by is missing", Type: "about:blank", Status: http.StatusForbidden}
	default:
		p = problem{Error: "rate limiter unavailable", Type: problemTypes + "temporary-reduced-capacity", Status: http.StatusServiceUnavailable}
	}
	p.Title = http.StatusText(p.Status)
	if d.Outcome != limiter.KeyMissing {
		p.RetryAfter = d.RetryAfter
	}
	if d.Cause.Policy.Response.Minimal {
		return p
	}
	p.Policy, p.Rule = d.Cause.Policy.Name.String(), d.Cause.Name
	if d.Outcome == limiter.Denied {
		p.Violated = violated(d)
	}
	return p
}

// violated are the names of the limits that refused, as the headers have them.
func violated(d *limiter.Decision) []string {
	var names []string
	for i := range d.Quotas {
		if d.Quotas[i].Over && !d.Quotas[i].Rule.Policy.Response.Minimal {
			names = append(names, string(appendName(nil, d.Quotas, i, i+1)))
		}
	}
	return names
}

// Refuse answers a request that may not pass: 429 if a limit denied it, 503 if a
// store could not answer, 403 if what it is counted by is missing, each with a
// problem body; for gRPC a status in trailers only.
func Refuse(w http.ResponseWriter, r *http.Request, d *limiter.Decision) {
	h := w.Header()
	if d.Outcome == limiter.Denied {
		SetHeaders(h, d)
	}
	h.Set("Cache-Control", "no-store")
	allowOrigin(h, r.Header, d.Cause.Policy.Response.AllowOrigins)
	p := problemOf(d)
	if IsGRPC(r.Header) {
		refuseGRPC(w, d, &p)
		return
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	body, _ := json.Marshal(p) // texts and numbers only
	body = append(body, '\n')
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the caller may be gone
	}
}

// exposed are the headers that scripts may read where CORS is configured.
var exposed = strings.Join(append(quotaHeaders[:], "Retry-After"), ", ")

// allowOrigin lets a script of a listed origin read the answer.
func allowOrigin(h, request http.Header, origins []string) {
	if len(origins) == 0 {
		return
	}
	everyone := slices.Contains(origins, "*")
	if !everyone {
		h.Add("Vary", "Origin")
	}
	origin := request.Get("Origin")
	switch {
	case origin == "":
		return
	case everyone:
		h.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
	default:
		return
	}
	h.Set("Access-Control-Expose-Headers", exposed)
}
