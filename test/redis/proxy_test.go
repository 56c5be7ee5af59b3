package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// short is how long a call waits for an answer that never comes.
const short = 200 * time.Millisecond

func TestProxyBreaksWhatItSays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		fault  func(*Proxy)
		// wants is the error on a connection that is open already, andNew that on
		// a new one.
		wants, andNew error
		// counted is how many of the two requests the server carries out.
		counted int64
	}{
		{"a proxy without fault passes all on", (*Proxy).Pass, nil, nil, 2},
		{"refused", (*Proxy).Refuse, syscall.ECONNRESET, syscall.ECONNREFUSED, 0},
		{"black-holed", (*Proxy).BlackHole, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, 0},
		{"delayed a little", func(p *Proxy) { p.Delay(short / 10) }, nil, nil, 2},
		{"delayed for too long", func(p *Proxy) { p.Delay(time.Minute) }, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, 2},
		{"replies are cut", (*Proxy).CutReplies, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF, 2},
		{"replies are swallowed", (*Proxy).SwallowReplies, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, 2},
		{"replies of other requests are swallowed", func(p *Proxy) {
			p.Only(func(request []string) bool { return request[0] == "PING" })
			p.SwallowReplies()
		}, nil, nil, 2},
		{"one reply is swallowed", func(p *Proxy) { p.DropReplies(1) }, os.ErrDeadlineExceeded, nil, 2},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			s := Start(t)
			p := NewProxy(t, s.Addr())
			var seen atomic.Int64
			p.Watch(func(request []string) {
				if cmp.Equal(request, []string{"INCR", "counter"}) {
					seen.Add(1)
				}
			})
			conn := connect(t, p.Addr())
			if err := ask(conn, "PING", patience); err != nil {
				t.Fatal(err)
			}
			test.fault(p)
			if err := ask(conn, "INCR counter", until(test.wants)); !errors.Is(err, test.wants) {
				t.Errorf("an open connection: %v, want %v", err, test.wants)
			}
			if err := askAnew(p.Addr(), "INCR counter", until(test.andNew)); !errors.Is(err, test.andNew) {
				t.Errorf("a new connection: %v, want %v", err, test.andNew)
			}
			await(t, "what was delivered is not counted", func(ctx context.Context) error {
				n, _ := s.Client().Get(ctx, "counter").Int64()
				if n != test.counted || seen.Load() != test.counted {
					return fmt.Errorf("the server counts %d, the proxy saw %d, want %d", n, seen.Load(), test.counted)
				}
				return nil
			})
			p.Pass()
			if err := askAnew(p.Addr(), "PING", patience); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func TestProxyPassesPipelinesAndBinary(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := NewProxy(t, s.Addr())
	client := dial(t, redis.Options{Addr: p.Addr()})
	value := "\r\n$5\x00" + strings.Repeat("é", 100_000)
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Set(t.Context(), "k", value, 0)
		pipe.Get(t.Context(), "absent")
		pipe.HSet(t.Context(), "h", "f", "v")
		pipe.HGetAll(t.Context(), "h")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if got := client.Get(t.Context(), "k").Val(); got != value {
		t.Errorf("%d bytes come back, want %d", len(got), len(value))
	}
}

func TestProxyEndsConnectionsWithTheServer(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := NewProxy(t, s.Addr())
	conn := connect(t, p.Addr())
	if err := ask(conn, "PING", patience); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := ask(conn, "PING", patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the error is %v, want one about the connection", err)
	}
	s.Run()
	if err := askAnew(p.Addr(), "PING", patience); err != nil {
		t.Errorf("the server is back: %v", err)
	}
}

// until is how long to wait for an answer that ends like that.
func until(err error) time.Duration {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return short
	}
	return patience
}

func connect(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends a command and reads the reply.
func ask(conn net.Conn, command string, within time.Duration) error {
	words := strings.Fields(command)
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	raw, _, err := readFrame(bufio.NewReader(conn), nil)
	if errors.Is(err, io.EOF) && len(raw) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

func askAnew(address, command string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	return ask(conn, command, within)
}
