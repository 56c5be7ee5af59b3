package distribution

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/distribution/streampb"
	"github.com/weir-dev/weir/internal/policycache"
)

// Bounds of what a stranger can have a server do.
const (
	// introduction is how long a caller may take to be known and to say hello.
	introduction = 10 * time.Second
	maxRequest   = 64 << 10
	maxStreams   = 8 // of one connection
)

// ServerOptions are a Server's surroundings.
type ServerOptions struct {
	Cache *policycache.Cache
	// Authenticate says who a token is for.
	Authenticate Authenticator
	// Changed is told that what enforcers of a namespace, or gateways, have in force
	// may be another. It must not block. Defaults to nobody.
	Changed func(namespace string, gateway bool)
	// Authorities are those by which enforcers should know managers, in PEM form;
	// nil if that is not known. Defaults to that.
	Authorities func() []byte
	Logger      *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}

// Server is a manager's end of the streams.
type Server struct {
	streampb.UnimplementedPoliciesServer
	options ServerOptions
	book    book
	// ending is closed when streams shall end.
	ending chan struct{}
}

// NewServer returns a Server for Register.
func NewServer(options ServerOptions) *Server {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Changed == nil {
		options.Changed = func(string, bool) {}
	}
	if options.Authorities == nil {
		options.Authorities = func() []byte { return nil }
	}
	return &Server{
		options: options,
		book:    book{now: options.Now, changed: options.Changed, entries: map[string]*entry{}},
		ending:  make(chan struct{}),
	}
}

// Register offers the service on a gRPC server made by NewGRPC.
func (s *Server) Register(r grpc.ServiceRegistrar) { streampb.RegisterPoliciesServer(r, s) }

// Confirmations returns what the enforcers of this server have in force.
func (s *Server) Confirmations() []Confirmation { return s.book.all() }

// Connected is how many enforcers have a stream.
func (s *Server) Connected() int { return s.book.count() }

// Close ends all streams. Enforcers turn to another replica.
func (s *Server) Close() { close(s.ending) }

// AuthoritiesChanged has all enforcers told of the authorities that hold now.
func (s *Server) AuthoritiesChanged() {
	for _, session := range s.book.sessions(func(*entry) bool { return true }) {
		session.notify()
	}
}

// PodGone ends the streams of a pod that was deleted, and forgets what it confirmed.
func (s *Server) PodGone(namespace, pod, uid string) {
	who := Identity{Namespace: namespace, Pod: pod, UID: uid}
	if gone := s.book.forget(who.key()); gone != nil {
		gone.end(status.Error(codes.PermissionDenied, "the pod is gone"))
	}
}

// PodChanged tells the labels that a pod has now. What its enforcer sees follows.
func (s *Server) PodChanged(namespace, pod string, labels map[string]string) {
	for _, session := range s.book.sessions(func(e *entry) bool { return e.Namespace == namespace && e.Pod == pod }) {
		session.relabel(labels)
	}
}

// NewGRPC returns a gRPC server for many quiet streams: buffers are small, since thousands of enforcers wait for a change now and then.
func NewGRPC(config *tls.Config) *grpc.Server {
	const buffer = 4 << 10
	return grpc.NewServer(
		grpc.Creds(credentials.NewTLS(config)),
		grpc.WriteBufferSize(buffer), grpc.ReadBufferSize(buffer),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(introduction),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	)
}

// Follow implements streampb.PoliciesServer.
func (s *Server) Follow(stream streampb.Policies_FollowServer) error {
	who, hello, err := s.introduce(stream)
	if err != nil {
		return err
	}
	session := newSession(s, stream, who, hello)
	if before := s.book.attend(session); before != nil {
		before.end(status.Error(codes.Aborted, "the enforcer has another stream"))
	}
	s.options.Logger.Debug("an enforcer connects", "namespace", who.Namespace, "pod", who.Pod, "build", hello.GetBuild())
	defer s.book.leave(session)
	return session.run()
}

// introduce finds out who calls, and takes the hello.
func (s *Server) introduce(stream streampb.Policies_FollowServer) (Identity, *streampb.Hello, error) {
	ctx, cancel := context.WithTimeout(stream.Context(), introduction)
	defer cancel()
	who, err := s.authenticate(ctx, bearer(ctx))
	if err != nil {
		return who, nil, err
	}
	type first struct {
		m   *streampb.FromEnforcer
		err error
	}
	received := make(chan first, 1)
	go func() { // it ends with the stream at the latest
		m, err := stream.Recv()
		received <- first{m, err}
	}()
	select {
	case <-ctx.Done():
		return who, nil, status.Error(codes.DeadlineExceeded, "say hello first")
	case <-s.ending:
		return who, nil, errEnding
	case f := <-received:
		if f.err != nil {
			return who, nil, f.err
		}
		hello := f.m.GetHello()
		if hello == nil || hello.GetProtocol() != protocol {
			return who, nil, status.Errorf(codes.FailedPrecondition, "say hello first, in protocol %d", protocol)
		}
		return who, hello, nil
	}
}

// protocol is the version of what is said on a stream.
const protocol = 1

var errEnding = status.Error(codes.Unavailable, "this replica ends: turn to another one")

// ErrBusy is an Authenticator's error when it could not find out.
var ErrBusy = errors.New("nobody can say now whether the token is good")

func (s *Server) authenticate(ctx context.Context, token string) (Identity, error) {
	if token == "" {
		return Identity{}, status.Error(codes.Unauthenticated, "send a service account token as authorization: Bearer")
	}
	who, err := s.options.Authenticate.Authenticate(ctx, token)
	switch {
	case errors.Is(err, ErrBusy), ctx.Err() != nil:
		return who, status.Error(codes.Unavailable, ErrBusy.Error())
	case err != nil:
		s.options.Logger.Warn("an enforcer is refused", "reason", err.Error())
		return who, status.Error(codes.Unauthenticated, err.Error())
	case !s.options.Now().Before(who.Expiry):
		return who, status.Error(codes.Unauthenticated, "the token has expired")
	}
	return who, nil
}

func bearer(ctx context.Context) string {
	for _, value := range metadata.ValueFromIncomingContext(ctx, "authorization") {
		if scheme, token, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
			return token
		}
	}
	return ""
}
