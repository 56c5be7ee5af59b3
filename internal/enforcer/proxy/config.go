package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// Protocol is what the application is spoken to.
type Protocol uint8

// The protocols towards the application.
const (
	// Auto is HTTP/2 for gRPC that arrives by HTTP/2, and HTTP/1.1 for all else.
	Auto Protocol = iota
	// HTTP1 is HTTP/1.1 for everything.
	HTTP1
	// HTTP2 is HTTP/2 for everything but WebSocket: with prior knowledge towards
	// http, negotiated towards https.
	HTTP2
)

// Config is what a Server needs to know.
type Config struct {
	// Upstream is where the application listens: http or https, host and port,
	// no path. Required.
	Upstream *url.URL
	// Protocol towards the application. Defaults to Auto.
	Protocol Protocol
	// Decider decides each request. Required.
	Decider limiter.Decider
	// Trusts tells whether a peer may say on whose behalf it forwards. Forwarding
	// fields of others are replaced. Defaults to trusting nobody.
	Trusts func(netip.Addr) bool
	// Logger is for trouble of the server itself, never for a request. Defaults
	// to slog.Default().
	Logger *slog.Logger
	// Limits guard against clients that are slow or greedy.
	Limits Limits
	// Observer is told what happens.
	Observer Observer
}

// Limits guard against clients that are slow or greedy. None of them applies to
// a body or an answer that is under way.
type Limits struct {
	// ReadHeaderTimeout is how long a client may take to send a request's header
	// fields. Defaults to 10 s.
	ReadHeaderTimeout time.Duration
	// IdleTimeout is how long a client's connection may stay without a request.
	// Defaults to 120 s.
	IdleTimeout time.Duration
	// UnreadBodyTimeout is how long the rest of a body that nobody wants may take
	// before its connection is closed. Defaults to 1 s.
	UnreadBodyTimeout time.Duration
	// MaxHeaderBytes is how long a request's header fields may be together.
	// Defaults to 128 KiB.
	MaxHeaderBytes int
	// MaxStreams is how many requests one HTTP/2 connection may have under way.
	// Defaults to 1000.
	MaxStreams int
	// PingInterval is how long an HTTP/2 client may be silent before it is asked
	// whether it is there. Defaults to 30 s.
	PingInterval time.Duration
	// DialTimeout is how long connecting to the application may take. Defaults to
	// 5 s.
	DialTimeout time.Duration
}

// Observer is told what happens; fields that are nil are not called. Calls come
// from many goroutines at once.
type Observer struct {
	// InFlight is told +1 when a request begins and −1 when it ends.
	InFlight func(delta int)
	// Failed is told why a request was not answered by the application.
	Failed func(kind FailureKind)
}

// withDefaults returns the configuration with its gaps filled.
func (c Config) withDefaults() (Config, error) {
	if c.Decider == nil {
		return c, errors.New("proxy needs a decider")
	}
	if err := checkUpstream(c.Upstream); err != nil {
		return c, err
	}
	if c.Trusts == nil {
		c.Trusts = func(netip.Addr) bool { return false }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Limits = c.Limits.withDefaults()
	c.Observer = c.Observer.withDefaults()
	return c, nil
}

// checkUpstream refuses addresses whose meaning would be a guess: a path in front
// of every path would change what the application receives.
func checkUpstream(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("upstream is missing: give the application's address, such as http://127.0.0.1:8080")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("upstream %q: the scheme must be http or https, such as http://127.0.0.1:8080", u.Redacted())
	case u.Hostname() == "":
		return fmt.Errorf("upstream %q: the host is missing, write it as http://127.0.0.1:8080", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("upstream %q: remove the user, requests are passed on with the client's own credentials", u.Redacted())
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return fmt.Errorf("upstream %q: remove what follows the host and port, paths are passed on as the client sends them", u.Redacted())
	}
	return nil
}

func (l Limits) withDefaults() Limits {
	return Limits{
		ReadHeaderTimeout: orDefault(l.ReadHeaderTimeout, 10*time.Second),
		IdleTimeout:       orDefault(l.IdleTimeout, 120*time.Second),
		UnreadBodyTimeout: orDefault(l.UnreadBodyTimeout, time.Second),
		MaxHeaderBytes:    orDefault(l.MaxHeaderBytes, 128<<10),
		MaxStreams:        orDefault(l.MaxStreams, 1000),
		PingInterval:      orDefault(l.PingInterval, 30*time.Second),
		DialTimeout:       orDefault(l.DialTimeout, 5*time.Second),
	}
}

func (o Observer) withDefaults() Observer {
	if o.InFlight == nil {
		o.InFlight = func(int) {}
	}
	if o.Failed == nil {
		o.Failed = func(FailureKind) {}
	}
	return o
}

// orDefault returns value, or fallback where nothing sensible was given.
func orDefault[T ~int | ~int64](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}
