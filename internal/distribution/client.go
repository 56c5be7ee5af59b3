package distribution

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/weir-dev/weir/internal/distribution/streampb"
	"github.com/weir-dev/weir/internal/policycache"
)

// How a client behaves in time.
const (
	shortestPause = 250 * time.Millisecond
	longestPause  = 15 * time.Second
	// goodStream is how long a stream must last for the next pause to be short.
	goodStream = 10 * time.Second
	// lookEvery is how often the token and the reach of backends are looked at.
	lookEvery = 5 * time.Second
)

// ClientOptions are a Client's surroundings.
type ClientOptions struct {
	// Manager is host:port. Its name may stand for several replicas.
	Manager string
	// TLS returns how to connect; it is asked each time.
	TLS func() (*tls.Config, error)
	// Token returns the credential to send; it is asked each time, and now and then.
	Token func() (string, error)
	// Build is this enforcer's version, and Features what it can do.
	Build    string
	Features []string
	// Apply puts a set in force, or returns why the one before stays.
	Apply func(*Set) error
	// Unreachable lists the backends that can't be reached now.
	Unreachable func() []policycache.LoginName
	// Trust is told by which authorities to know managers from now on, in PEM form.
	// Defaults to nobody.
	Trust  func(authorities []byte)
	Logger *slog.Logger
}

// Client is an enforcer's end of a stream.
type Client struct {
	options ClientOptions
	sets    assembler
	// told is what was logged last.
	told string
}

// NewClient returns a client that has no set.
func NewClient(options ClientOptions) *Client { return &Client{options: options} }

// Run follows a manager until ctx ends, and comes back to one whenever a stream
// ends. What is in force stays so meanwhile.
func (c *Client) Run(ctx context.Context) {
	pause := shortestPause
	for ctx.Err() == nil {
		began := time.Now()
		err := c.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > goodStream {
			pause = shortestPause
		}
		c.tell(err)
		// Many enforcers lose a manager at once: they come back spread out.
		wait := pause/2 + rand.N(pause)
		pause = min(2*pause, longestPause)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// tell logs why there is no stream, once for each reason.
func (c *Client) tell(err error) {
	text := "the stream ended"
	if err != nil {
		text = err.Error()
	}
	if text == c.told {
		return
	}
	c.told = text
	c.options.Logger.Warn("no stream from the manager, the last good set stays in force", "manager", c.options.Manager, "reason", text)
}

// follow is one stream.
func (c *Client) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, token, closeAll, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	c.sets.reset()
	incoming, failed := make(chan *streampb.FromManager), make(chan error, 1)
	go receive(stream, incoming, failed)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var unreachable []policycache.LoginName
	for {
		select {
		case err := <-failed:
			return err
		case m := <-incoming:
			if err := c.hear(stream, m); err != nil {
				return err
			}
			unreachable, err = c.report(stream, unreachable, m.GetCommit() != nil)
		case <-look.C:
			if token, err = c.renew(stream, token); err == nil {
				unreachable, err = c.report(stream, unreachable, false)
			}
		}
		if err != nil {
			return err
		}
	}
}

func receive(stream streampb.Policies_FollowClient, incoming chan<- *streampb.FromManager, failed chan<- error) {
	for {
		m, err := stream.Recv()
		if err != nil {
			failed <- err
			return
		}
		select {
		case incoming <- m:
		case <-stream.Context().Done():
			return
		}
	}
}

// open connects and says hello.
func (c *Client) open(ctx context.Context) (_ streampb.Policies_FollowClient, token string, closeAll func(), err error) {
	config, err := c.options.TLS()
	if err != nil {
		return nil, "", nil, err
	}
	if token, err = c.options.Token(); err != nil {
		return nil, "", nil, err
	}
	connection, err := grpc.NewClient(c.options.Manager,
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*maxPart)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
	)
	if err != nil {
		return nil, "", nil, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	stream, err := streampb.NewPoliciesClient(connection).Follow(ctx)
	if err == nil {
		err = stream.Send(&streampb.FromEnforcer{Message: &streampb.FromEnforcer_Hello{Hello: &streampb.Hello{
			Protocol: protocol, Build: c.options.Build, Features: c.options.Features, Version: c.sets.current.Version,
		}}})
	}
	if err != nil {
		_ = connection.Close()
		return nil, "", nil, err
	}
	return stream, token, func() { _ = connection.Close() }, nil
}

// hear takes up a message, and answers a commit.
func (c *Client) hear(stream streampb.Policies_FollowClient, m *streampb.FromManager) error {
	if a := m.GetAuthorities(); a != nil {
		if c.options.Trust != nil {
			c.options.Trust(a.GetCertificates())
		}
		return nil
	}
	set, err := c.sets.take(m)
	if err != nil {
		return err
	}
	if set == nil {
		return nil
	}
	answer := &streampb.Applied{Version: set.Version}
	if err := c.options.Apply(set); err != nil {
		answer.Problem = err.Error()
		c.options.Logger.Error("a set can't be applied, the last good one stays in force", "error", err)
	} else {
		c.sets.adopt(set)
		c.told = ""
	}
	return stream.Send(&streampb.FromEnforcer{Message: &streampb.FromEnforcer_Applied{Applied: answer}})
}

// renew sends the token if there is another one. Where it can't be read, what was
// good may still be: the manager says when it is not.
func (c *Client) renew(stream streampb.Policies_FollowClient, had string) (string, error) {
	if token, err := c.options.Token(); err == nil && token != had {
		return token, stream.Send(&streampb.FromEnforcer{Message: &streampb.FromEnforcer_Token{Token: &streampb.Token{Token: token}}})
	}
	return had, nil
}

// report sends what can't be reached if that has changed, and after each set.
func (c *Client) report(stream streampb.Policies_FollowClient, had []policycache.LoginName, always bool) ([]policycache.LoginName, error) {
	if c.options.Unreachable == nil {
		return nil, nil
	}
	now := c.options.Unreachable()
	if !always && equalLogins(had, now) {
		return had, nil
	}
	return now, stream.Send(&streampb.FromEnforcer{Message: &streampb.FromEnforcer_Health{Health: &streampb.Health{Unreachable: loginsToPB(now)}}})
}

func equalLogins(a, b []policycache.LoginName) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
