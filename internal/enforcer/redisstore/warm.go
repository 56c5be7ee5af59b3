package redisstore

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// Warm prepares, until ctx's deadline, what the first operations would have to wait
// for: on every server that counts as many connections as calls are under way at
// most, the script, and what time it is there. What can't be prepared is left to
// the operations.
func (s *Store) Warm(ctx context.Context) { s.router.warm(ctx) }

func (a alone) warm(ctx context.Context) { a.node.warm(ctx, a.client) }

func (c *cluster) warm(ctx context.Context) {
	err := c.client.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		c.nodeOf(master).warm(ctx, master)
		return nil
	})
	if err == nil {
		c.known.Store(true)
	}
}

// warm leaves the connections in the client's pool.
func (n *node) warm(ctx context.Context, client *redis.Client) {
	direct := &single{client: client}
	var running sync.WaitGroup
	for range min(maxLines, client.Options().PoolSize) {
		running.Go(func() {
			// The first call makes a connection, so only the second one is quick
			// enough to tell the time by.
			for range 2 {
				_ = n.greet(ctx, direct) // the operations will tell
			}
		})
	}
	running.Wait()
	direct.release()
}

// greet calls the script for no operation at all, which answers with the time.
func (n *node) greet(ctx context.Context, e executor) error {
	c := newCall(nil)
	defer c.release()
	c.encode(0)
	sent := n.now()
	e.execute(ctx, c.alone())
	if c.err != nil {
		return classify(ctx, c.err)
	}
	if len(c.reply) >= replyHeader {
		n.learn(c.reply, sent, n.now())
	}
	return nil
}

// Reach returns why some server that counts can't be reached, until ctx's deadline.
// The error is one of the limiter's.
func (s *Store) Reach(ctx context.Context) error { return s.router.reach(ctx) }

func (a alone) reach(ctx context.Context) error { return a.node.reach(ctx, a.client) }

func (c *cluster) reach(ctx context.Context) error {
	err := c.client.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return c.nodeOf(master).reach(ctx, master)
	})
	if err != nil && limiter.KindOf(err) == limiter.KindOther {
		err = classify(ctx, err)
	}
	return err
}

func (n *node) reach(ctx context.Context, client *redis.Client) error {
	direct := &single{client: client}
	defer direct.release()
	return n.greet(ctx, direct)
}
