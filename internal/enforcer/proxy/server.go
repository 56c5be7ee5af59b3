package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
)

// Server is the proxy: an http.Handler that also knows how to listen. It speaks
// HTTP/1.1 and cleartext HTTP/2 with prior knowledge on one listener.
type Server struct {
	config    Config
	http      *http.Server
	reverse   *httputil.ReverseProxy
	upstream  *upstream
	upgrades  upgrades
	exchanges sync.Pool
}

// New returns a Server that does not listen yet. The error says what is wrong
// with the configuration.
func New(config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, upstream: newUpstream(config)}
	s.exchanges.New = func() any { return &exchange{server: s} }
	s.reverse = &httputil.ReverseProxy{
		Rewrite:        s.rewrite,
		Transport:      s.upstream,
		ModifyResponse: checkAnswer,
		ErrorHandler:   s.answerFailure,
		ErrorLog:       discardLog(),
		BufferPool:     &buffers{},
	}
	s.http = newHTTPServer(config, s)
	return s, nil
}

func newHTTPServer(config Config, handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: config.Limits.ReadHeaderTimeout,
		IdleTimeout:       config.Limits.IdleTimeout,
		MaxHeaderBytes:    config.Limits.MaxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: config.Limits.MaxStreams,
			SendPingTimeout:      config.Limits.PingInterval,
		},
		// OPTIONS * is the application's to answer.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     serverLog(config.Logger),
	}
}

// Serve answers the connections of l until Shutdown, and then returns nil. It
// closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets the requests under way end, and cuts what is
// still open when ctx ends, WebSockets included. The error tells that something
// was cut. A Server serves no more afterwards.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err == nil {
		err = s.upgrades.wait(ctx)
	}
	if err != nil {
		_ = s.http.Close()
		s.upgrades.closeAll()
	}
	s.upstream.closeIdle()
	return err
}
