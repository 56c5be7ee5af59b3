package proxy

import (
	"bufio"
	"net"
	"net/http"
	"sync"

	"github.com/weir-dev/weir/internal/enforcer/answer"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// exchange is one request and its answer: what was decided, and the writer that
// puts the quota on whatever answer is given in the end. Exchanges are reused.
type exchange struct {
	http.ResponseWriter
	server   *Server
	request  policy.Request
	decision limiter.Decision
	// answered tells that the final answer's header fields are written.
	answered bool
	// body is the client's, nil if there is none.
	body *requestBody
	// http1 tells that the client speaks HTTP/1, and http10 that it is version 1.0.
	http1, http10 bool
	// upgraded is the client's connection once it is no longer HTTP.
	upgraded net.Conn
}

// exchangeKey finds the exchange in the context of an upgrade request.
type exchangeKey struct{}

// begin takes an exchange for r.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x, _ := s.exchanges.Get().(*exchange)
	x.ResponseWriter = w
	x.http1, x.http10 = r.ProtoMajor == 1, !r.ProtoAtLeast(1, 1)
	fillRequest(&x.request, r)
	return x
}

// end gives an exchange back. Nothing of the request may stay with it.
func (s *Server) end(x *exchange) {
	x.ResponseWriter, x.request, x.body, x.upgraded = nil, policy.Request{}, nil, nil
	x.answered = false
	s.exchanges.Put(x)
}

// mustClose tells whether the client's connection cannot be used again, because it
// would be unclear where the next request begins: after HTTP/1.0, where what
// follows a Transfer-Encoding may be a body or not (RFC 9112 section 6.1), and
// when the answer begins before the body has ended.
func (x *exchange) mustClose() bool {
	return x.http10 || x.http1 && x.body != nil && !x.body.ended.Load()
}

// WriteHeader puts the quota on the final answer; informational ones (1xx) pass, but
// for 100: the client is asked for the body when the application's side reads it, and
// would else be asked twice.
func (x *exchange) WriteHeader(status int) {
	if status == http.StatusContinue {
		return
	}
	if status >= 200 && !x.answered {
		x.answered = true
		h := x.Header()
		answer.Annotate(h, x.request.Header, &x.decision)
		if x.mustClose() {
			h.Set("Connection", "close")
		}
		if _, ok := h["Content-Type"]; !ok {
			h["Content-Type"] = nil // keeps net/http from guessing one
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer's body.
func (x *exchange) Write(p []byte) (int, error) {
	if !x.answered {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(p)
}

// FlushError sends what was written so far.
func (x *exchange) FlushError() error {
	if f, ok := x.ResponseWriter.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// Hijack hands out the client's connection, which the server closes when it ends.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err == nil {
		x.upgraded = conn
		x.server.upgrades.add(conn)
	}
	return conn, rw, err
}

// bufferSize is how much of a body is copied at once.
const bufferSize = 32 << 10

// buffers lends out the memory that bodies are copied through.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of bufferSize.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put takes a buffer back. As an array's pointer it goes into the pool without
// an allocation.
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
