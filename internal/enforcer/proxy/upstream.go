package proxy

import (
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// idleUpstream is shorter than the common servers' own keep-alive timeouts of
	// 5 s and more, so that a request does not meet a connection that the
	// application is just closing.
	idleUpstream = 4 * time.Second
	// continueWait is how long an application may take to ask for the body of a
	// request with Expect: 100-continue before it is sent anyway.
	continueWait = time.Second
	// maxIdleUpstream is how many connections may wait for the next request.
	maxIdleUpstream = 1024
)

// upstream is the way to the application, by HTTP/1.1 and by HTTP/2.
type upstream struct {
	protocol Protocol
	http1    *http.Transport
	http2    *http.Transport
}

func newUpstream(config Config) *upstream {
	http1, http2 := new(http.Protocols), new(http.Protocols)
	http1.SetHTTP1(true)
	if config.Upstream.Scheme == "https" {
		http2.SetHTTP2(true)
	} else {
		http2.SetUnencryptedHTTP2(true)
	}
	return &upstream{
		protocol: config.Protocol,
		http1:    newTransport(config.Limits, http1),
		http2:    newTransport(config.Limits, http2),
	}
}

// newTransport returns a transport without anything that would change a request
// or cut an answer. In particular it sends no pings: gRPC servers take them for an
// attack and close the connection.
func newTransport(limits Limits, protocols *http.Protocols) *http.Transport {
	dialer := &net.Dialer{Timeout: limits.DialTimeout}
	return &http.Transport{
		Proxy:                 nil,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   limits.DialTimeout,
		Protocols:             protocols,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   maxIdleUpstream,
		IdleConnTimeout:       idleUpstream,
		ExpectContinueTimeout: continueWait,
	}
}

// RoundTrip sends one request to the application.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.speaksHTTP2(r) {
		return u.http2.RoundTrip(r)
	}
	return u.http1.RoundTrip(r)
}

// speaksHTTP2 tells whether r, the client's request or the application's, goes on
// by HTTP/2.
func (u *upstream) speaksHTTP2(r *http.Request) bool {
	switch u.protocol {
	case HTTP1:
		return false
	case HTTP2:
		return r.Header["Upgrade"] == nil
	}
	return r.ProtoMajor == 2 && isGRPC(r.Header)
}

// isGRPC tells whether the fields are those of a gRPC call. gRPC-Web is not.
func isGRPC(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) == 0 {
		return false
	}
	rest, ok := strings.CutPrefix(types[0], "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

func (u *upstream) closeIdle() {
	u.http1.CloseIdleConnections()
	u.http2.CloseIdleConnections()
}
