package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// originForm returns the path and query that r asks for, just as they were sent.
// The absolute form (RFC 9112 section 3.2.2) names a scheme and host in front of
// them, which are cut off. It returns false for what is neither that nor a path,
// nor the asterisk of OPTIONS.
func originForm(r *http.Request) (string, bool) {
	target := r.RequestURI
	switch {
	case strings.HasPrefix(target, "/"):
		return target, true
	case target == "*":
		return target, r.Method == http.MethodOptions
	case r.ProtoMajor != 1:
		return "", false // HTTP/2 knows no absolute form
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || (!strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")) {
		return "", false
	}
	start := strings.IndexAny(rest, "/?#")
	switch {
	case start == 0:
		return "", false
	case start < 0 && r.Method == http.MethodOptions:
		return "*", true // section 3.2.4
	case start < 0:
		return "/", true
	case rest[start] == '/':
		return rest[start:], true
	}
	return "/" + rest[start:], rest[start] == '?'
}

// passableTarget tells whether the application can be sent r's target unchanged,
// and will read the same path in it. A target has no fragment (RFC 9112 section
// 3.2), and many applications cut one off that is there all the same: it would be
// a way to write one path as any number of others.
func passableTarget(r *http.Request, http2 bool) bool {
	target, ok := originForm(r)
	ok = ok && !strings.Contains(target, "#")
	if !ok || http2 || !strings.HasPrefix(target, "//") {
		return ok
	}
	// net/url writes // at the beginning of a target only by way of the path, and
	// escapes in it what RFC 3986 does not allow.
	return r.URL.RequestURI() == target
}

// setTarget makes out, a copy of the client's URL, ask for target unchanged.
//
// net/url keeps Opaque as it is, but writes the scheme in front of one that begins
// with //. net/http takes scheme and host off again for HTTP/2 alone; for HTTP/1
// such a target must go by way of the path, as the client's URL has it already.
func setTarget(out *url.URL, target, host string, http2 bool) {
	switch {
	case !strings.HasPrefix(target, "//"):
		out.Opaque, out.RawQuery, out.ForceQuery = target, "", false
	case http2:
		out.Opaque, out.RawQuery, out.ForceQuery = "//"+host+target, "", false
	default:
		// ReverseProxy has removed from the query what it could not parse.
		_, out.RawQuery, out.ForceQuery = strings.Cut(target, "?")
	}
}

// passableHost tells whether net/http sends host on as it is: it would translate
// what is not ASCII, cut the zone off an IPv6 address, and leave the rest out.
func passableHost(host string) bool {
	for i := range len(host) {
		if host[i] >= 0x80 {
			return false
		}
	}
	zoned := strings.HasPrefix(host, "[") && strings.Contains(host, "%")
	return !zoned && httpguts.ValidHostHeader(host)
}
