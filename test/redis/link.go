package redis

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"
)

// link is one client's connection through a Proxy.
type link struct {
	proxy  *Proxy
	client net.Conn
	once   sync.Once
	done   chan struct{}
	// applies tells of each request that was not answered yet whether faults apply
	// to its reply, in the order of replies.
	mu      sync.Mutex
	applies []bool
}

// serve copies requests, and replies beside, until either side ends.
func (l *link) serve() {
	defer l.proxy.leave(l)
	defer l.end()
	requests := bufio.NewReader(l.client)
	var server net.Conn
	var replies sync.WaitGroup
	defer replies.Wait()
	for {
		raw, words, err := readFrame(requests, nil)
		if err != nil {
			break
		}
		if l.proxy.isBlackHole() {
			continue
		}
		// A server that cannot be reached looks like one that refuses.
		if server == nil {
			if server, err = (&net.Dialer{}).DialContext(context.Background(), "tcp", l.proxy.target); err != nil {
				break
			}
			defer func() { _ = server.Close() }()
			replies.Go(func() { l.answer(server) })
		}
		l.expect(l.proxy.seen(words))
		if _, err := server.Write(raw); err != nil {
			break
		}
	}
	l.end()
	if server != nil {
		_ = server.Close()
	}
}

func (l *link) expect(applies bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.applies = append(l.applies, applies)
}

// next tells whether faults apply to the next reply. What comes unasked is none.
func (l *link) next() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.applies) == 0 {
		return false
	}
	applies := l.applies[0]
	l.applies = l.applies[1:]
	return applies
}

// answer copies replies.
func (l *link) answer(server net.Conn) {
	defer l.end()
	replies := bufio.NewReader(server)
	for {
		raw, _, err := readFrame(replies, nil)
		if err != nil {
			return
		}
		switch f := l.proxy.replyFault(l.next()); f.kind {
		case swallowed, blackHoled:
			continue
		case cutting:
			_, _ = l.client.Write(raw[:len(raw)/2])
			return
		case delaying:
			l.wait(f.delay)
		}
		if _, err := l.client.Write(raw); err != nil {
			return
		}
	}
}

// wait lasts for d, or until the connection ends. A reply that waits when the
// fault ends goes on waiting, as on a slow line.
func (l *link) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.done:
	}
}

// end closes the connection to the client.
func (l *link) end() {
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close()
	})
}

// reset ends the connection so that the client sees it refused, not closed.
func (l *link) reset() {
	if tcp, ok := l.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	l.end()
}
