package standalone

import (
	"context"
	"log/slog"
	"net/url"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/front"
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

// Server is a proxy that enforces what files say, and its admin pages.
type Server struct {
	*front.Server
	config   Config
	read     []filesource.File
	files    *files
	embedded *embedded
}

// New puts the policies in force and listens. Connections are answered once Run
// is called. The error of broken files is a filesource.ProblemsError.
func New(ctx context.Context, config Config) (_ *Server, err error) {
	s := &Server{config: config}
	s.Server, err = front.New(front.Config{
		ClientAddress: config.ClientAddress, Upstream: config.Upstream, Listen: config.Listen, AdminListen: config.AdminListen,
		DrainTimeout: config.DrainTimeout, Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	s.files = &files{paths: config.Policies, logger: config.Logger, metrics: s.Metrics, enforced: s.Enforced, warned: map[string]bool{}}
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
	s.Metrics.Reloaded(true)
	return s, s.Open(ctx)
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

// Run serves until ctx ends, then lets the requests under way end for as long as
// DrainTimeout says. A Server runs once.
func (s *Server) Run(ctx context.Context) error {
	s.announce()
	var beside []func(context.Context)
	if s.config.Watch {
		beside = append(beside, func(ctx context.Context) { s.files.follow(ctx, s.read) })
	}
	if s.embedded != nil {
		beside = append(beside, s.embedded.age)
		defer s.embedded.redis.Close()
	}
	return s.Server.Run(ctx, beside...)
}

// close frees what New made.
func (s *Server) close() {
	s.Close()
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
	if s.Enforced.Policies() == 0 {
		logger.Warn("there is no policy: every request passes")
	} else {
		logger.Info("policies are in force", s.Enforced.Summary()...)
	}
}
