package redis

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a client and a server and breaks what goes through. It
// begins by passing everything on; what is changed while it runs holds for open
// connections too. It reads the Redis protocol, so it is of no use with TLS.
type Proxy struct {
	t      testing.TB
	port   int
	target string

	mu       sync.Mutex
	listener net.Listener
	links    map[*link]struct{}
	fault    fault
	watch    func(request []string)
	only     func(request []string) bool
	serving  sync.WaitGroup
}

// kind is what happens to what goes through.
type kind uint8

const (
	passing kind = iota
	blackHoled
	delaying  // replies wait
	cutting   // replies end in the middle, and so does the connection
	swallowed // replies never come
)

type fault struct {
	kind  kind
	delay time.Duration
	count int // how many replies are swallowed, if not all
}

// NewProxy listens on loopback until the test ends, and passes on to target.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, port: reservePort(t), target: target, links: map[*link]struct{}{}}
	p.listen()
	t.Cleanup(func() {
		p.Refuse()
		p.serving.Wait()
	})
	return p
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return local(p.port) }

// Watch has every request told to seen just before it goes to the server, from
// many goroutines, whatever becomes of its reply.
func (p *Proxy) Watch(seen func(request []string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = seen
}

// Only has replies delayed, cut or swallowed for these requests only, so that
// clients can still log in.
func (p *Proxy) Only(requests func(request []string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.only = requests
}

// Pass ends every fault. Replies that were swallowed stay so.
func (p *Proxy) Pass() { p.set(fault{}) }

// BlackHole takes requests and connections and does nothing with them. What it
// took is lost: it reaches the server never, not even after Pass.
func (p *Proxy) BlackHole() { p.set(fault{kind: blackHoled}) }

// Delay lets every reply wait that long, one after the other on a connection.
func (p *Proxy) Delay(d time.Duration) { p.set(fault{kind: delaying, delay: d}) }

// CutReplies passes on the first half of a reply and breaks the connection.
func (p *Proxy) CutReplies() { p.set(fault{kind: cutting}) }

// SwallowReplies delivers requests and keeps their replies. The connections stay
// open, and have lost a reply for good.
func (p *Proxy) SwallowReplies() { p.set(fault{kind: swallowed}) }

// DropReplies swallows the next n replies and passes on all others.
func (p *Proxy) DropReplies(n int) { p.set(fault{kind: swallowed, count: n}) }

// Refuse resets all connections and takes no more, until the next change.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.reset()
	}
}

func (p *Proxy) set(f fault) {
	p.t.Helper()
	p.mu.Lock()
	p.fault = f
	p.mu.Unlock()
	p.listen()
}

func (p *Proxy) listen() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", p.Addr())
	if err != nil {
		p.t.Fatal(err)
	}
	p.listener = listener
	p.serving.Go(func() { p.accept(listener) })
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		l := &link{proxy: p, client: conn, done: make(chan struct{})}
		p.mu.Lock()
		isOpen := p.listener == listener
		if isOpen {
			p.links[l] = struct{}{}
			p.serving.Go(l.serve)
		}
		p.mu.Unlock()
		if !isOpen {
			l.reset()
			return
		}
	}
}

func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) isBlackHole() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault.kind == blackHoled
}

// seen tells who watches, and whether faults apply to the reply.
func (p *Proxy) seen(request []string) (applies bool) {
	p.mu.Lock()
	watch, only := p.watch, p.only
	p.mu.Unlock()
	if watch != nil {
		watch(request)
	}
	return only == nil || only(request)
}

// replyFault is what happens to the next reply.
func (p *Proxy) replyFault(applies bool) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !applies {
		return fault{}
	}
	f := p.fault
	if f.kind == swallowed && f.count > 0 {
		if p.fault.count--; p.fault.count == 0 {
			p.fault = fault{}
		}
	}
	return f
}
