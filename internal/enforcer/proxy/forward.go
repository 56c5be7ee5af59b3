package proxy

import (
	"errors"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"

	"github.com/weir-dev/weir/internal/enforcer/answer"
)

// rewrite turns the client's request into the application's. ReverseProxy has
// removed the fields that are for this hop alone, and every forwarding field.
func (s *Server) rewrite(pr *httputil.ProxyRequest) {
	http2 := s.upstream.speaksHTTP2(pr.In)
	target, _ := originForm(pr.In)
	host := pr.In.Host
	if host == "" {
		host = s.config.Upstream.Host
	}
	pr.Out.URL.Scheme, pr.Out.URL.Host = s.config.Upstream.Scheme, s.config.Upstream.Host
	setTarget(pr.Out.URL, target, host, http2)
	if body, ok := pr.In.Body.(*requestBody); ok {
		body.out = pr.Out
	}
	s.setForwarded(pr.Out.Header, pr.In)
}

// setForwarded tells the application who is asking. What a trusted peer says is
// kept and extended; what others say is replaced by what is known of them.
func (s *Server) setForwarded(h http.Header, in *http.Request) {
	peer := peerAddress(in.RemoteAddr)
	scheme := "http"
	if in.TLS != nil {
		scheme = "https"
	}
	values := []string{peer.WithZone("").String(), in.Host, scheme}
	if s.config.Trusts(peer) {
		values[0] = extend(in.Header["X-Forwarded-For"], values[0])
		values[1] = orJoined(in.Header["X-Forwarded-Host"], values[1])
		values[2] = orJoined(in.Header["X-Forwarded-Proto"], values[2])
		if forwarded := in.Header["Forwarded"]; len(forwarded) > 0 {
			h["Forwarded"] = []string{extend(forwarded, forwardedElement(peer))}
		}
	}
	if peer.IsValid() {
		h["X-Forwarded-For"] = values[0:1:1]
	}
	h["X-Forwarded-Host"] = values[1:2:2]
	h["X-Forwarded-Proto"] = values[2:3:3]
}

// extend returns all lines of a list field as one, with one entry more.
func extend(lines []string, entry string) string {
	if list := strings.Join(lines, ", "); list != "" {
		return list + ", " + entry
	}
	return entry
}

// orJoined returns all lines of a field as one, or fallback if there is none.
func orJoined(lines []string, fallback string) string {
	if len(lines) == 0 {
		return fallback
	}
	return strings.Join(lines, ", ")
}

// forwardedElement is one element of a Forwarded field (RFC 7239 section 6).
func forwardedElement(peer netip.Addr) string {
	switch {
	case !peer.IsValid():
		return "for=unknown"
	case peer.Is6():
		return `for="[` + peer.WithZone("").String() + `]"`
	}
	return "for=" + peer.String()
}

var errStatus = errors.New("application answered with a status below 100")

// checkAnswer looks at the application's answer before it is passed back. The
// quota of an upgrade goes on here, because its answer is not written by way of
// the exchange.
func checkAnswer(res *http.Response) error {
	if res.StatusCode < 100 {
		return errStatus // net/http would panic
	}
	if len(res.Trailer) > 0 && res.Request.Method != http.MethodHead {
		// HTTP/2 may have a length and a trailer, HTTP/1.1 has only chunks with one.
		res.Header.Del("Content-Length")
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		if x, ok := res.Request.Context().Value(exchangeKey{}).(*exchange); ok {
			answer.SetHeaders(res.Header, &x.decision)
		}
	}
	return nil
}
