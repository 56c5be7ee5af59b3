package redisstore

import (
	"context"
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

// Store keeps counters in one Redis, which may be many servers.
type Store struct {
	client  redis.UniversalClient
	router  router
	timeout time.Duration
}

// router finds the node that decides an operation, and looks after all nodes.
type router interface {
	route(ctx context.Context, op *limiter.Op) *node
	warm(ctx context.Context)
	reach(ctx context.Context) error
}

// New returns a store. It does not connect yet.
func New(cfg Config) (*Store, error) {
	client, err := open(cfg)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Store{timeout: cfg.Timeout}
	now := cfg.Now
	if now == nil {
		start := time.Now()
		now = func() time.Duration { return time.Since(start) }
	}
	observer := cfg.Observer
	if observer == nil {
		observer = nobody{}
	}
	newNode := func(e executor) *node { return newNode(e, now, s.timeout, observer) }
	switch client := client.(type) {
	case *redis.ClusterClient:
		s.client, s.router = client, newCluster(client, newNode)
	case *redis.Client:
		s.client, s.router = client, alone{newNode(&single{client: client}), client}
	}
	return s, nil
}

// alone is the router of a store with one node.
type alone struct {
	node   *node
	client *redis.Client
}

func (a alone) route(context.Context, *limiter.Op) *node { return a.node }

// Close ends all connections. Operations under way fail.
func (s *Store) Close() error { return s.client.Close() }

// Do carries out operations, together with those of other callers that wait for
// the same node, until ctx's deadline.
func (s *Store) Do(ctx context.Context, batch []*limiter.Op) {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(s.timeout)
		limited, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = limited
	}
	if len(batch) == 1 {
		s.router.route(ctx, batch[0]).do(ctx, end, batch[0])
		return
	}
	waiting := make([]*pending, len(batch))
	for i, op := range batch {
		waiting[i] = s.router.route(ctx, op).submit(end, op)
	}
	for i, op := range batch {
		if waiting[i] != nil {
			waiting[i].await(op)
		}
	}
}

func fail(batch []*limiter.Op, err error) {
	for _, op := range batch {
		op.Err = err
	}
}
