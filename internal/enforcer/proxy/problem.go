package proxy

import (
	"net/http"
	"strconv"
)

// problem is an answer of the proxy itself (RFC 9457).
type problem struct {
	status int
	body   string
}

var (
	tunnelRefused = problem{http.StatusMethodNotAllowed, `{"title":"Method Not Allowed","status":405,"detail":"CONNECT is not served here"}`}
	badHost       = problem{http.StatusBadRequest, `{"title":"Bad Request","status":400,"detail":"the host cannot be passed on as it was sent"}`}
	badTarget     = problem{http.StatusBadRequest, `{"title":"Bad Request","status":400,"detail":"the request target cannot be passed on as it was sent; percent-encode what RFC 3986 does not allow"}`}
	badBody       = problem{http.StatusBadRequest, `{"title":"Bad Request","status":400,"detail":"the body is malformed or incomplete"}`}
	badGateway    = problem{http.StatusBadGateway, `{"title":"Bad Gateway","status":502,"detail":"the application did not answer"}`}
	notListening  = problem{http.StatusServiceUnavailable, `{"title":"Service Unavailable","status":503,"detail":"the application is not listening yet"}`}
)

// write answers with the problem. The client may be gone, which nobody cares about.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(p.body)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	_, _ = w.Write([]byte(p.body))
}
