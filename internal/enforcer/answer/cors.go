package answer

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

const (
	everyOrigin   = "*"
	exposeHeaders = "Access-Control-Expose-Headers"
)

// exposed are the headers that scripts may read on a refusal.
var exposed = strings.Join(append(quotaHeaders[:], "Retry-After"), ", ")

// allowOrigin lets a script of a listed origin read a refusal. Only an origin that
// is listed by name may send credentials: browsers ignore "*" then, and nobody
// means every site by it.
func allowOrigin(h, request http.Header, origins []string) {
	if slices.ContainsFunc(origins, func(o string) bool { return o != everyOrigin }) {
		h.Add("Vary", "Origin")
	}
	origin := request.Get("Origin")
	switch {
	case origin == "":
		return
	case origin != everyOrigin && slices.Contains(origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
	case slices.Contains(origins, everyOrigin):
		h.Set("Access-Control-Allow-Origin", everyOrigin)
	default:
		return
	}
	h.Set(exposeHeaders, exposed)
}

// Annotate adds to an answer of the application, whose header fields are h, what
// the caller is told about its quota. Where a policy configures CORS and lists the
// request's origin, scripts may read that; whether they may read the answer at
// all stays the application's to say.
func Annotate(h, request http.Header, d *limiter.Decision) {
	SetHeaders(h, d)
	if first, end := exposable(request, d); first < end {
		expose(h, quotaHeaders[first:end])
	}
}

// exposable are the families of quota headers, as a part of quotaHeaders, that
// policies show to scripts of the request's origin.
func exposable(request http.Header, d *limiter.Decision) (first, end int) {
	legacy, standard := false, false
	for i := range d.Quotas {
		response := &d.Quotas[i].Rule.Policy.Response
		if len(response.AllowOrigins) > 0 && lists(response.AllowOrigins, request.Get("Origin")) {
			legacy, standard = legacy || response.Legacy, standard || response.Standard
		}
	}
	first, end = legacyHeaders, legacyHeaders
	if legacy {
		first = 0
	}
	if standard {
		end = len(quotaHeaders)
	}
	return first, end
}

// lists tells that a request's origin is one of these.
func lists(origins []string, origin string) bool {
	return origin != "" && (slices.Contains(origins, everyOrigin) || slices.Contains(origins, origin))
}

// expose adds names to those that the application exposes.
func expose(h http.Header, names []string) {
	var all []string
	for _, line := range h[exposeHeaders] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				all = append(all, name)
			}
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(there string) bool { return strings.EqualFold(there, name) }) {
			all = append(all, name)
		}
	}
	h.Set(exposeHeaders, strings.Join(all, ", "))
}
