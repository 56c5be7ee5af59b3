package proxy

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// isWebSocket tells whether r asks to become a WebSocket, in the one form that
// RFC 6455 section 4.1 allows. With a body it would not be clear where that ends.
func isWebSocket(r *http.Request) bool {
	wants := r.Header["Upgrade"]
	return len(wants) == 1 && strings.EqualFold(wants[0], "websocket") &&
		r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ProtoMinor >= 1 && !hasBody(r) &&
		httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade")
}

// upgrades are the client connections that are WebSockets now. http.Server knows
// nothing of them any more.
type upgrades struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	empty  chan struct{} // closed when conns becomes empty; nil while nobody waits
	closed bool
}

// add keeps conn until forget.
func (u *upgrades) add(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		_ = conn.Close()
	}
	if u.conns == nil {
		u.conns = map[net.Conn]struct{}{}
	}
	u.conns[conn] = struct{}{}
}

// forget drops the connection of an exchange that has ended, if it was upgraded.
func (u *upgrades) forget(x *exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, x.upgraded)
	if len(u.conns) == 0 && u.empty != nil {
		close(u.empty)
		u.empty = nil
	}
}

// wait returns nil once there are none, or the context's error.
func (u *upgrades) wait(ctx context.Context) error {
	select {
	case <-u.emptied():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// emptied returns a channel that is closed once there are none.
func (u *upgrades) emptied() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.empty == nil {
		u.empty = make(chan struct{})
	}
	empty := u.empty
	if len(u.conns) == 0 {
		close(u.empty)
		u.empty = nil
	}
	return empty
}

// closeAll cuts all of them, and any that come later.
func (u *upgrades) closeAll() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for conn := range u.conns {
		_ = conn.Close()
	}
}
