package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// Observer learns what happens between a Store and its Redis.
type Observer interface {
	// Called is told of each call of the script, how long it took and how it failed.
	Called(took time.Duration, err error)
	// Repaired is told how many counters without expiry were given one.
	Repaired(counters int64)
}

type nobody struct{}

func (nobody) Called(time.Duration, error) {}
func (nobody) Repaired(int64)              {}

// Store keeps counters in one standalone Redis.
type Store struct {
	client   *redis.Client
	now      func() time.Duration
	observer Observer
	timeout  time.Duration
	// offset is Redis's time minus now, in nanoseconds. The first operation
	// learns it by being stale.
	offset atomic.Int64
}

// maxStale is how often an operation may be stale before it fails: once for a
// clock that was never set, once for the turn of a window, and some.
const maxStale = 5

// New returns a store. It does not connect yet.
func New(cfg Config) (*Store, error) {
	if len(cfg.Addresses) == 0 {
		return nil, fmt.Errorf("redis store: name the server's address, host:port")
	}
	s := &Store{now: cfg.Now, observer: cfg.Observer, timeout: cfg.Timeout}
	if s.now == nil {
		start := time.Now()
		s.now = func() time.Duration { return time.Since(start) }
	}
	if s.observer == nil {
		s.observer = nobody{}
	}
	if s.timeout == 0 {
		s.timeout = 50 * time.Millisecond
	}
	s.client = redis.NewClient(options(cfg, s.timeout))
	return s, nil
}

// Close ends all connections. Operations under way fail.
func (s *Store) Close() error { return s.client.Close() }

// Do carries out a batch in one round trip, and a second one for operations
// whose window turned meanwhile.
func (s *Store) Do(ctx context.Context, batch []*limiter.Op) {
	for range maxStale {
		stale, err := s.once(ctx, batch)
		if err != nil {
			fail(batch, err)
			return
		}
		if len(stale) == 0 {
			return
		}
		batch = stale
	}
	fail(batch, limiter.ErrStale)
}

func fail(batch []*limiter.Op, err error) {
	for _, op := range batch {
		op.Err = err
	}
}

// once calls the script once, and returns the operations that were stale.
func (s *Store) once(ctx context.Context, batch []*limiter.Op) ([]*limiter.Op, error) {
	c := calls.Get().(*call)
	defer c.release()
	sent := s.now()
	c.encode(batch, int64((sent+time.Duration(s.offset.Load()))/time.Second))
	reply, err := s.eval(ctx, c)
	received := s.now()
	s.observer.Called(received-sent, err)
	if err != nil {
		return nil, err
	}
	stale, err := c.decode(reply, nil)
	if err != nil {
		return nil, err
	}
	if repaired := reply[2]; repaired > 0 {
		s.observer.Repaired(repaired)
	}
	redisTime := time.Duration(reply[0])*time.Second + time.Duration(reply[1])*time.Microsecond
	s.offset.Store(int64(redisTime - (sent+received)/2))
	return stale, nil
}

var evalSHA, eval = "EVALSHA", "EVAL"

// eval calls the script by its name, and by its text where Redis does not know
// it yet.
func (s *Store) eval(ctx context.Context, c *call) ([]int64, error) {
	numKeys := strconv.Itoa(c.keys)
	cmd := newCommand(ctx, c.arguments(&evalSHA, &ScriptSHA, &numKeys))
	err := s.client.Process(ctx, cmd)
	if isNoScript(err) {
		cmd = newCommand(ctx, c.arguments(&eval, &Script, &numKeys))
		err = s.client.Process(ctx, cmd)
	}
	if err != nil {
		return nil, classify(ctx, err)
	}
	return cmd.Val(), nil
}

// command is a call of the script that the client must not repeat by itself.
type command struct{ *redis.IntSliceCmd }

// NoRetry tells go-redis that the command may have been carried out even if no
// answer came.
func (command) NoRetry() bool { return true }

func newCommand(ctx context.Context, args []any) command {
	return command{redis.NewIntSliceCmd(ctx, args...)}
}
