package standalone

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
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
)

// Config is what a Server needs to know.
type Config struct {
	// Policies are files and directories. At least one.
	Policies []string
	// Watch keeps what is enforced up to date with them.
	Watch bool
	// Redis takes the place of every policy's backend. Defaults to none.
	Redis *Redis
	// ClientAddress is for policies without one of their own. Defaults to trusting
	// nobody.
	ClientAddress *v1alpha1.ClientAddress
	// Upstream is where the application listens.
	Upstream *url.URL
	// Listen and AdminListen are host:port.
	Listen, AdminListen string
	// DrainTimeout is how long requests under way may take at the end.
	DrainTimeout time.Duration
	// Logger is told what an operator should know, and nothing about requests.
	Logger *slog.Logger
}

// Server is a proxy that limits, and its admin pages.
type Server struct {
	config   Config
	read     []filesource.File
	files    *files
	enforced *enforcement.Enforcement
	embedded *embedded
	proxy    *proxy.Server
	admin    *http.Server
	front    net.Listener
	back     net.Listener
	draining atomic.Bool
}

// New puts the policies in force and listens. Connections are answered once Run
// is called. The error of broken files is a filesource.ProblemsError.
func New(ctx context.Context, config Config) (_ *Server, err error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := metrics.New(registry)
	s := &Server{config: config, enforced: enforcement.New(enforcement.Options{
		ClientAddress: config.ClientAddress,
		Limiter:       limiter.Options{Observer: failurelog.New(m, config.Logger, time.Now), Fallback: memstore.New(time.Now, 0)},
		Observe:       m.Backend,
	})}
	s.files = &files{paths: config.Policies, logger: config.Logger, metrics: m, enforced: s.enforced, warned: map[string]bool{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.override(); err != nil {
		return nil, err
	}
	if s.read, err = filesource.Read(config.Policies...); err != nil {
		return nil, err
	}
	if err := s.files.take(s.read); err != nil {
		return nil, err
	}
	m.Reloaded(true)
	s.proxy, err = proxy.New(proxy.Config{
		Upstream: config.Upstream, Decider: s.enforced.Decider(), Trusts: s.enforced.Trusts, Logger: config.Logger, Observer: m.Proxy(),
	})
	if err != nil {
		return nil, err
	}
	s.admin = &http.Server{
		Handler:           adminHandler(registry, s.enforced, &s.draining),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	return s, s.listen(ctx)
}

// override sets up the Redis that takes the place of all others.
func (s *Server) override() (err error) {
	switch redis := s.config.Redis; {
	case redis == nil:
	case !redis.embedded:
		s.files.override = redis.target
	default:
		if s.embedded, err = startEmbedded(); err != nil {
			return err
		}
		s.files.override = embeddedTarget(s.embedded.redis.Addr())
	}
	return nil
}

func (s *Server) listen(ctx context.Context) (err error) {
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

// Run serves until ctx ends, then lets the requests under way end for as long as
// DrainTimeout says. A Server runs once.
func (s *Server) Run(ctx context.Context) error {
	s.announce()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	if s.config.Watch {
		background.Go(func() { s.files.follow(work, s.read) })
	}
	if s.embedded != nil {
		background.Go(func() { s.embedded.age(work) })
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
	s.close()
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

// close frees what New made.
func (s *Server) close() {
	for _, l := range []net.Listener{s.front, s.back} {
		if l != nil {
			_ = l.Close()
		}
	}
	s.enforced.Close()
	if s.embedded != nil {
		s.embedded.redis.Close()
	}
}

// announce says what runs, and where.
func (s *Server) announce() {
	logger := s.config.Logger
	switch {
	case s.embedded != nil:
		logger.Warn("counters live in this process only and are lost when it ends (--redis embedded)", "redis", s.embedded.redis.Addr())
	case s.files.override != nil:
		logger.Info("all policies count in one redis, whatever their redisRef (--redis)", "redis", s.files.override.Config.Addresses[0])
	}
	if s.enforced.Policies() == 0 {
		logger.Warn("there is no policy: every request passes")
	} else {
		logger.Info("policies are in force", s.enforced.Summary()...)
	}
	logger.Info("listening", "listen", s.Addr(), "admin", s.AdminAddr(), "upstream", s.config.Upstream.Redacted())
}
