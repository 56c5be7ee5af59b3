package proxy

import (
	"errors"
	"net"
	"net/http"
	"syscall"
)

// FailureKind is why a request was not answered by the application. There are
// few, so that they can be a metric's label.
type FailureKind string

// The kinds of failure.
const (
	// Refused: nothing listens at the upstream address (503).
	Refused FailureKind = "refused"
	// Unreachable: connecting took too long or was not possible (502).
	Unreachable FailureKind = "unreachable"
	// Broken: the connection broke, or what came back is not HTTP (502).
	Broken FailureKind = "broken"
	// BodyInvalid: the client's body is not what its header fields say (400).
	BodyInvalid FailureKind = "body_invalid"
	// ClientGone: the client did not wait for the answer.
	ClientGone FailureKind = "client_gone"
)

// answerFailure answers for an application that did not. The answer carries the
// quota like any other, because the request was counted.
func (s *Server) answerFailure(w http.ResponseWriter, out *http.Request, err error) {
	kind := BodyInvalid
	if x, ok := w.(*exchange); !ok || x.body == nil || !x.body.broken.Load() {
		kind = classify(out, err)
	}
	s.config.Observer.Failed(kind)
	switch kind {
	case Refused:
		w.Header().Set("Retry-After", "1")
		notListening.write(w)
	case BodyInvalid:
		badBody.write(w)
	default:
		badGateway.write(w)
	}
}

func classify(out *http.Request, err error) FailureKind {
	if out.Context().Err() != nil {
		return ClientGone
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return Refused
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return Unreachable
	}
	return Broken
}
