package answer

import (
	"encoding/json"
	"net/http"
	"strconv"

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

// Refusal is an answer in place of the application's, in the words of HTTP but for
// any protocol that carries them.
type Refusal struct {
	// Status is 429 if a limit denied the request, 503 if a store could not answer,
	// 403 if what the request is counted by is missing; always 200 for gRPC.
	Status int
	// Header are the header fields, by their names as they are written. How long
	// the body is, is not among them.
	Header http.Header
	// Body is a problem document (RFC 9457). It is empty for gRPC.
	Body []byte
}

// RefusalOf is the answer to a request with these header fields: a problem, or for
// gRPC a status in trailers only. The decision's outcome is not Allowed.
func RefusalOf(request http.Header, d *limiter.Decision) Refusal {
	return refusalIn(http.Header{}, request, d)
}

// refusalIn is RefusalOf, written into h.
func refusalIn(h, request http.Header, d *limiter.Decision) Refusal {
	if d.Outcome == limiter.Denied {
		SetHeaders(h, d)
	}
	h.Set("Cache-Control", "no-store")
	allowOrigin(h, request, d.Cause.Policy.Response.AllowOrigins)
	p := problemOf(d)
	if IsGRPC(request) {
		setGRPC(h, d, &p)
		return Refusal{Status: http.StatusOK, Header: h}
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	h.Set("Content-Type", "application/problem+json")
	body, _ := json.Marshal(p) // texts and numbers only
	return Refusal{Status: p.Status, Header: h, Body: append(body, '\n')}
}

// Refuse writes the answer to a request that may not pass.
func Refuse(w http.ResponseWriter, r *http.Request, d *limiter.Decision) {
	refusal := refusalIn(w.Header(), r.Header, d)
	if len(refusal.Body) > 0 {
		refusal.Header.Set("Content-Length", strconv.Itoa(len(refusal.Body)))
	}
	w.WriteHeader(refusal.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(refusal.Body) // the caller may be gone
	}
}
