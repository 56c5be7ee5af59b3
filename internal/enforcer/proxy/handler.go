package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/answer"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// ServeHTTP decides one request and answers it or passes it on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.config.Observer.InFlight(+1)
	defer s.config.Observer.InFlight(-1)

	if p := s.unacceptable(r); p != nil {
		s.boundUnreadBody(w, r)
		p.write(w)
		return
	}
	x := s.begin(w, r)
	s.config.Decider.Decide(r.Context(), &x.request, &x.decision)
	if x.decision.Outcome == limiter.Allowed {
		s.forward(x, r)
	} else {
		s.refuse(x, r)
	}
	// Not deferred: where the engine aborts by a panic, it may still hold x.
	s.end(x)
}

// unacceptable returns the answer for a request that cannot be passed on as it
// is, or nil.
func (s *Server) unacceptable(r *http.Request) *problem {
	switch {
	case r.Method == http.MethodConnect:
		return &tunnelRefused
	case !passableHost(r.Host):
		return &badHost
	case !passableTarget(r, s.upstream.speaksHTTP2(r)):
		return &badTarget
	}
	return nil
}

// forward passes a request on, and the application's answer back.
func (s *Server) forward(x *exchange, r *http.Request) {
	if isWebSocket(r) {
		// The only way from the 101 answer back to its decision.
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		defer s.upgrades.forget(x)
	} else {
		// Whatever else the connection would become could not be counted. What the
		// client asked goes on as a plain request.
		delete(r.Header, "Upgrade")
		delete(r.Header, "Http2-Settings")
	}
	if !hasBody(r) {
		s.reverse.ServeHTTP(x, r)
		return
	}
	tracked, body := withBody(r)
	x.body = body
	if x.http1 {
		// The application may answer while the body is still coming; without this
		// net/http would take the body's rest for itself first.
		_ = http.NewResponseController(x.ResponseWriter).EnableFullDuplex()
	}
	defer s.finishBody(x, r)
	s.reverse.ServeHTTP(x, tracked)
	if x.mustClose() {
		// The answer is whole and waits for nobody.
		_ = x.FlushError()
	}
}

// finishBody reads the rest of a body that the application did not want, within
// bounds. net/http would wait for it without any when the handler has returned or
// panicked, because it takes a deadline back when a read is under way.
func (s *Server) finishBody(x *exchange, r *http.Request) {
	if x.http1 && !x.body.ended.Load() {
		s.boundUnreadBody(x.ResponseWriter, r)
		x.body.drain()
	}
}

// refuse answers in place of the application.
func (s *Server) refuse(x *exchange, r *http.Request) {
	if x.mustClose() {
		x.Header().Set("Connection", "close")
	}
	s.boundUnreadBody(x.ResponseWriter, r)
	answer.Refuse(x.ResponseWriter, r, &x.decision)
}

// boundUnreadBody bounds how long net/http waits for the rest of a body that
// nobody reads any more. Where the rest does not arrive in that time, or is long,
// it closes the connection.
func (s *Server) boundUnreadBody(w http.ResponseWriter, r *http.Request) {
	if hasBody(r) && r.ProtoMajor == 1 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.config.Limits.UnreadBodyTimeout))
	}
}

func hasBody(r *http.Request) bool { return r.ContentLength != 0 }

// fillRequest describes r to the policies as the client sent it.
func fillRequest(req *policy.Request, r *http.Request) {
	target, _ := originForm(r)
	req.Method = r.Method
	req.Host = r.Host
	req.Path, req.RawQuery, _ = strings.Cut(target, "?")
	req.Header = r.Header
	req.Peer = peerAddress(r.RemoteAddr)
}

// peerAddress returns the address without port, or the zero Addr for what is not
// an IP connection.
func peerAddress(remote string) netip.Addr {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap()
}
