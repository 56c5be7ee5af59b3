package redisstore

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// fresh is how long after its last use a connection is taken for good without
// asking the system. A server that went away in between costs one call.
const fresh = 50 * time.Millisecond

// single executes on one server, where all keys are in one slot. It holds on to the
// connections that its lines use, since taking one from the pool, which looks
// whether it is still there, costs a tenth of a call.
type single struct {
	client *redis.Client
	mu     sync.Mutex
	held   []held
}

// held is a connection, out of the pool.
type held struct {
	*redis.Conn
	used time.Time
}

func (*single) group(ops []*limiter.Op) []*call { return newCall(ops).alone() }

func (s *single) execute(ctx context.Context, calls []*call) {
	conn := s.take()
	for _, c := range calls {
		cmd := c.command(ctx, false)
		if err := conn.Process(ctx, cmd); isNoScript(err) {
			cmd = c.command(ctx, true)
			_ = conn.Process(ctx, cmd)
		}
		c.reply, c.err = cmd.Result()
	}
	s.give(conn, calls[len(calls)-1].err)
}

// take returns the connection that was used last, or one from the pool.
func (s *single) take() *redis.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.held); n > 0 {
		last := s.held[n-1]
		s.held = s.held[:n-1]
		if time.Since(last.used) < fresh {
			return last.Conn
		}
		_ = last.Close() // back to the pool
	}
	return s.client.Conn()
}

// give keeps a connection for the next call, unless this one may have broken it.
func (s *single) give(conn *redis.Conn, err error) {
	if err != nil {
		_ = conn.Close()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, held{conn, time.Now()})
}

// release gives all connections back.
func (s *single) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		_ = h.Close()
	}
	s.held = nil
}

// command is a call of the script that the client must not repeat by itself.
type command struct{ *redis.IntSliceCmd }

// NoRetry tells go-redis that the command may have been carried out even if no
// answer came.
func (command) NoRetry() bool { return true }

var evalSHA, eval = "EVALSHA", "EVAL"

// command calls the script by its name, or by its text.
func (c *call) command(ctx context.Context, byText bool) command {
	c.numKeys = strconv.Itoa(c.keys)
	name, script := &evalSHA, &ScriptSHA
	if byText {
		name, script = &eval, &Script
	}
	return command{redis.NewIntSliceCmd(ctx, c.arguments(name, script)...)}
}
