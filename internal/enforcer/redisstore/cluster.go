package redisstore

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// cluster routes each operation to the lines of the master that has its slot, so
// that a node that is slow or gone holds up nothing else. The keys of an operation
// are in one slot: limiter sees to that.
type cluster struct {
	client  *redis.ClusterClient
	newNode func(executor) *node
	// seed stands for whichever node there is, until the slots are known.
	seed  *node
	known atomic.Bool
	// nodes are by address. They are few, so those that left stay.
	nodes sync.Map
}

func newCluster(client *redis.ClusterClient, newNode func(executor) *node) *cluster {
	c := &cluster{client: client, newNode: newNode}
	c.seed = newNode(clustered{c})
	return c
}

func (c *cluster) route(ctx context.Context, op *limiter.Op) *node {
	if !c.known.Load() || len(op.Checks) == 0 {
		return c.seed
	}
	master, err := c.client.MasterForKey(ctx, op.Checks[0].Key)
	if err != nil {
		return c.seed
	}
	return c.nodeOf(master)
}

func (c *cluster) nodeOf(master *redis.Client) *node {
	address := master.Options().Addr
	if n, ok := c.nodes.Load(address); ok {
		return n.(*node)
	}
	n, _ := c.nodes.LoadOrStore(address, c.newNode(clustered{c}))
	return n.(*node)
}

// clustered executes on a Cluster. The client follows MOVED and ASK.
type clustered struct{ *cluster }

// group makes a call for each slot.
func (clustered) group(ops []*limiter.Op) []*call {
	if len(ops) == 1 {
		return newCall(ops).alone()
	}
	var calls []*call
	bySlot := make(map[uint16]*call, len(ops))
	for _, op := range ops {
		var at uint16
		if len(op.Checks) > 0 {
			at = slot(op.Checks[0].Key)
		}
		if c := bySlot[at]; c != nil {
			c.ops = append(c.ops, op)
			continue
		}
		c := newCall([]*limiter.Op{op})
		bySlot[at] = c
		calls = append(calls, c)
	}
	return calls
}

func (e clustered) execute(ctx context.Context, calls []*call) {
	var unknown []*call
	e.send(ctx, calls, false)
	for _, c := range calls {
		if isNoScript(c.err) {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		e.send(ctx, unknown, true)
	}
	for _, c := range calls {
		if c.err == nil {
			e.known.Store(true)
		} else if isMoving(c.err) || !isAnswer(c.err) {
			e.client.ReloadState(ctx) // in the background, a few times a second at most
		}
	}
}

// send makes one round trip.
func (e clustered) send(ctx context.Context, calls []*call, byText bool) {
	commands := make([]command, len(calls))
	for i, c := range calls {
		commands[i] = c.command(ctx, byText)
	}
	if len(calls) == 1 {
		_ = e.client.Process(ctx, commands[0])
	} else {
		pipe := e.client.Pipeline()
		for _, cmd := range commands {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx)
	}
	for i, c := range calls {
		c.reply, c.err = commands[i].Result()
	}
}
