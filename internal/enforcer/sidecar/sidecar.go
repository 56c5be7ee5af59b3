package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/distribution"
	"github.com/weir-dev/weir/internal/enforcer/front"
	"github.com/weir-dev/weir/internal/policycache"
)

// Config is what a Server needs to know.
type Config struct {
	// Manager is the stream's host:port, and ServerName what its certificate says
	// where that is not the host.
	Manager, ServerName string
	// TokenFile holds the service account token for the stream, CAFile the
	// authorities of the manager's certificate until it names others. Both are read
	// anew when needed.
	TokenFile, CAFile string
	// Patience is how long to wait for the first set before being ready without.
	Patience time.Duration
	// Build is this program's version.
	Build string

	// As in front.Config.
	ClientAddress       *v1alpha1.ClientAddress
	Upstream            *url.URL
	Listen, AdminListen string
	DrainTimeout        time.Duration
	Logger              *slog.Logger
}

// Server is a proxy that enforces what a manager says, and its admin pages.
type Server struct {
	*front.Server
	feed   *feed
	client *distribution.Client
}

// New listens. Connections are answered, and the manager is asked, once Run is
// called.
func New(ctx context.Context, config Config) (*Server, error) {
	s := &Server{}
	patience := time.Now().Add(config.Patience)
	var err error
	s.Server, err = front.New(front.Config{
		ClientAddress: config.ClientAddress, Upstream: config.Upstream, Listen: config.Listen, AdminListen: config.AdminListen,
		DrainTimeout: config.DrainTimeout, Logger: config.Logger,
		Ready: func() error { return s.ready(patience) },
	})
	if err != nil {
		return nil, err
	}
	s.feed = newFeed(s.Enforced)
	managers := &authorities{path: config.CAFile, serverName: config.ServerName}
	s.client = distribution.NewClient(distribution.ClientOptions{
		Manager: config.Manager, TLS: managers.config, Trust: managers.tell, Token: config.token, Build: config.Build, Features: policycache.Known(),
		Apply: func(set *distribution.Set) error {
			err := s.feed.apply(set)
			s.Metrics.Reloaded(err == nil)
			if err == nil {
				config.Logger.Info("policies are in force", s.Enforced.Summary()...)
			}
			return err
		},
		Unreachable: s.feed.away, Logger: config.Logger,
	})
	if err := s.Open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

var errNoSet = errors.New("waiting for the first policies")

func (s *Server) ready(patience time.Time) error {
	select {
	case <-s.feed.first:
		return nil
	default:
	}
	if time.Now().Before(patience) {
		return errNoSet
	}
	return nil
}

// Run serves until ctx ends, then lets the requests under way end for as long as
// DrainTimeout says. A Server runs once.
func (s *Server) Run(ctx context.Context) error {
	return s.Server.Run(ctx, s.client.Run, s.feed.follow)
}

func (c *Config) token() (string, error) {
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("the service account token: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}
