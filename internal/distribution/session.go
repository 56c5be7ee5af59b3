package distribution

import (
	"bytes"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/distribution/streampb"
	"github.com/weir-dev/weir/internal/policycache"
)

// session is one enforcer's stream. Its fields belong to run, but for those that
// say otherwise.
type session struct {
	server *Server
	stream streampb.Policies_FollowServer
	who    Identity
	hello  *streampb.Hello

	// Signals from elsewhere. What is newest counts, so one place is enough.
	wake    chan struct{}
	labels  chan map[string]string
	ended   chan error
	inbox   chan *streampb.FromEnforcer
	receive chan error

	stopWatching func()
	confirmed    *policycache.View
	sent         *policycache.View // and not answered yet
	refused      *policycache.View // by the enforcer, which keeps the one before
	authorities  []byte            // that were sent
}

func newSession(s *Server, stream streampb.Policies_FollowServer, who Identity, hello *streampb.Hello) *session {
	return &session{
		server: s, stream: stream, who: who, hello: hello,
		wake: make(chan struct{}, 1), labels: make(chan map[string]string, 1), ended: make(chan error, 1),
		inbox: make(chan *streampb.FromEnforcer), receive: make(chan error, 1),
	}
}

// relabel may be called by anybody.
func (s *session) relabel(labels map[string]string) {
	for {
		select {
		case s.labels <- labels:
			return
		default:
		}
		select {
		case <-s.labels: // an older one
		default:
		}
	}
}

// end may be called by anybody.
func (s *session) end(err error) {
	select {
	case s.ended <- err:
	default:
	}
}

func (s *session) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) audience() policycache.Audience {
	return policycache.Audience{
		Namespace: s.who.Namespace, Labels: s.who.Labels, Gateway: s.who.Gateway, Namespaces: s.who.Namespaces,
		Features: s.hello.GetFeatures(),
	}
}

// run serves the enforcer until something ends the stream.
func (s *session) run() error {
	go s.listen()
	s.watch()
	defer func() { s.stopWatching() }()
	expiry := time.NewTimer(s.who.Expiry.Sub(s.server.options.Now()))
	defer expiry.Stop()
	for {
		if err := s.serve(); err != nil {
			return err
		}
		select {
		case <-s.wake:
		case labels := <-s.labels:
			if !maps.Equal(labels, s.who.Labels) {
				s.who.Labels = labels
				s.stopWatching()
				s.watch()
			}
		case m := <-s.inbox:
			if err := s.hear(m); err != nil {
				return err
			}
			expiry.Reset(s.who.Expiry.Sub(s.server.options.Now()))
		case err := <-s.receive:
			return err
		case err := <-s.ended:
			return err
		case <-expiry.C:
			return status.Error(codes.Unauthenticated, "the token has expired")
		case <-s.server.ending:
			return errEnding
		}
	}
}

func (s *session) watch() {
	s.stopWatching = s.server.options.Cache.Watch(s.audience(), s.notify)
}

// listen hands on what the enforcer says.
func (s *session) listen() {
	for {
		m, err := s.stream.Recv()
		if err != nil {
			s.receive <- err
			return
		}
		select {
		case s.inbox <- m:
		case <-s.stream.Context().Done():
			return
		}
	}
}

// serve sends the newest set, unless the enforcer has it, has refused it or has an
// answer to give first.
func (s *session) serve() error {
	if err := s.introduceManagers(); err != nil {
		return err
	}
	if s.sent != nil {
		return nil
	}
	view, ok := s.server.options.Cache.View(s.audience())
	switch {
	case !ok, same(view, s.confirmed), same(view, s.refused):
		return nil
	case s.confirmed == nil && s.refused == nil && bytes.Equal(s.hello.GetVersion(), view.Version[:]):
		// It comes from another replica, or from before a restart, with just this.
		s.confirmed = view
		s.server.book.confirm(s, view)
		return nil
	}
	s.sent = view
	return sendSet(s.stream.Send, s.confirmed, view)
}

// introduceManagers sends the authorities of managers if they are others than before.
func (s *session) introduceManagers() error {
	now := s.server.options.Authorities()
	if now == nil || bytes.Equal(now, s.authorities) {
		return nil
	}
	s.authorities = now
	return s.stream.Send(&streampb.FromManager{Message: &streampb.FromManager_Authorities{Authorities: &streampb.Authorities{Certificates: now}}})
}

func same(a, b *policycache.View) bool {
	return a == b || a != nil && b != nil && a.Version == b.Version
}

// hear takes up what the enforcer says.
func (s *session) hear(m *streampb.FromEnforcer) error {
	switch m := m.GetMessage().(type) {
	case *streampb.FromEnforcer_Applied:
		return s.answered(m.Applied)
	case *streampb.FromEnforcer_Health:
		s.server.book.reach(s, loginsFromPB(m.Health.GetUnreachable()))
	case *streampb.FromEnforcer_Token:
		return s.renew(m.Token.GetToken())
	default:
		return status.Error(codes.InvalidArgument, "this makes no sense here")
	}
	return nil
}

func (s *session) answered(a *streampb.Applied) error {
	if s.sent == nil || !bytes.Equal(a.GetVersion(), s.sent.Version[:]) {
		return status.Error(codes.InvalidArgument, "this answers nothing")
	}
	view := s.sent
	s.sent = nil
	if a.GetProblem() != "" {
		s.refused = view
		s.server.options.Logger.Warn("an enforcer can't apply a set, and keeps the one before",
			"namespace", s.who.Namespace, "pod", s.who.Pod, "build", s.hello.GetBuild())
		return nil
	}
	s.confirmed, s.refused = view, nil
	s.server.book.confirm(s, view)
	return nil
}

// renew takes a newer token of the same enforcer.
func (s *session) renew(token string) error {
	who, err := s.server.authenticate(s.stream.Context(), token)
	if err != nil {
		return err
	}
	if who.key() != s.who.key() || who.Gateway != s.who.Gateway {
		return status.Error(codes.PermissionDenied, "the new token is another enforcer's")
	}
	s.who.Expiry = who.Expiry
	return nil
}
