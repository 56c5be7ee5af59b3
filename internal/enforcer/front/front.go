package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/enforcement"
	"github.com/weir-dev/weir/internal/enforcer/failurelog"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
)

// Config is what a Server needs to know.
type Config struct {
	// ClientAddress is for policies without one of their own. Defaults to trusting
	// nobody.
	ClientAddress *v1alpha1.ClientAddress
	// Upstream is where the application listens.
	Upstream *url.URL
	// Listen and AdminListen are host:port.
	Listen, AdminListen string
	// DrainTimeout is how long requests under way may take at the end.
	DrainTimeout time.Duration
	// Ready returns why requests should not come yet. Defaults to never.
	Ready func() error
	// Logger is told what an operator should know, and nothing about requests.
	Logger *slog.Logger
}

// Server is a proxy that limits, and its admin pages.
type Server struct {
	// Enforced is what the proxy enforces, nothing at first.
	Enforced *enforcement.Enforcement
	Metrics  *metrics.Metrics

	config   Config
	proxy    *proxy.Server
	admin    *http.Server
	front    net.Listener
	back     net.Listener
	draining atomic.Bool
}

// New returns a Server that does not listen yet.
func New(config Config) (*Server, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := metrics.New(registry)
	s := &Server{config: config, Metrics: m, Enforced: enforcement.New(enforcement.Options{
		ClientAddress: config.ClientAddress,
		Limiter:       limiter.Options{Observer: failurelog.New(m, config.Logger, time.Now), Fallback: memstore.New(time.Now, 0)},
		Observe:       m.Backend,
	})}
	var err error
	s.proxy, err = proxy.New(proxy.Config{
		Upstream: config.Upstream, Decider: s.Enforced.Decider(), Trusts: s.Enforced.Trusts, Logger: config.Logger, Observer: m.Proxy(),
	})
	if err != nil {
		s.Enforced.Close()
		return nil, err
	}
	s.admin = &http.Server{
		Handler:           adminHandler(registry, s.Enforced, s.readiness),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	return s, nil
}

// readiness ends with draining, and not for want of a Redis: what happens then is
// the policies' to say.
func (s *Server) readiness() error {
	switch {
	case s.draining.Load():
		return errors.New("draining")
	case s.config.Ready != nil:
		return s.config.Ready()
	}
	return nil
}

// Open listens. Connections are answered once Run is called.
func (s *Server) Open(ctx context.Context) (err error) {
	var listener net.ListenConfig
	if s.front, err = listener.Listen(ctx, "tcp", s.config.Listen); err != nil {
		return fmt.Errorf("%w; choose another address with --listen", err)
	}
	if s.back, err = listener.Listen(ctx, "tcp", s.config.AdminListen); err != nil {
		return fmt.Errorf("%w; choose another address with --admin-listen", err)
	}
	return nil
}

// Addr is where the proxy listens.
func (s *Server) Addr() string { return s.front.Addr().String() }

// AdminAddr is where the admin pages are.
func (s *Server) AdminAddr() string { return s.back.Addr().String() }

// Admin serves the admin pages.
func (s *Server) Admin() http.Handler { return s.admin.Handler }

// Run serves until ctx ends, then lets the requests under way end for as long as
// DrainTimeout says. What runs beside, until requests have ended, is for keeping
// Enforced up to date. A Server runs once.
func (s *Server) Run(ctx context.Context, beside ...func(context.Context)) error {
	s.config.Logger.Info("listening", "listen", s.Addr(), "admin", s.AdminAddr(), "upstream", s.config.Upstream.Redacted())
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	for _, run := range beside {
		background.Go(func() { run(work) })
	}
	failed := make(chan error, 2)
	background.Go(func() { failed <- s.proxy.Serve(s.front) })
	background.Go(func() { failed <- s.admin.Serve(s.back) })

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.drain(ctx)
	stop()
	_ = s.admin.Close()
	background.Wait()
	s.Close()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

func (s *Server) drain(ctx context.Context) {
	s.draining.Store(true)
	s.config.Logger.Info("draining", "timeout", s.config.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.DrainTimeout)
	defer cancel()
	if err := s.proxy.Shutdown(ctx); err != nil {
		s.config.Logger.Warn("requests were cut at the end of the drain timeout")
	}
}

// Close frees what a Server that does not run has.
func (s *Server) Close() {
	for _, l := range []net.Listener{s.front, s.back} {
		if l != nil {
			_ = l.Close()
		}
	}
	s.Enforced.Close()
}
