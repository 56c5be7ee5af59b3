package redis

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is how many slots every Redis Cluster has.
const slots = 16384

// ClusterOptions are the size of a Cluster and what its nodes may need.
type ClusterOptions struct {
	// Masters defaults to 3.
	Masters int
	// Replicas is how many each master has. Defaults to none, which starts faster.
	Replicas int
	// Password is every node's. Defaults to none.
	Password string
	// TLS is for clients and between nodes. Defaults to none.
	TLS *Certificates
	// Args go to every node.
	Args []string
}

// Cluster is a Redis Cluster whose nodes agree when a method returns.
type Cluster struct {
	t       testing.TB
	options ClusterOptions
	nodes   []*Server
	ids     map[*Server]string
	epochs  int
}

// StartCluster starts a Cluster whose masters share the slots evenly.
func StartCluster(t testing.TB, options ClusterOptions) *Cluster {
	t.Helper()
	if options.Masters == 0 {
		options.Masters = 3
	}
	c := &Cluster{t: t, options: options, ids: map[*Server]string{}}
	for range options.Masters * (1 + options.Replicas) {
		c.nodes = append(c.nodes, c.prepareNode())
	}
	startAll(c.nodes)
	for i, s := range c.nodes {
		c.join(s)
		if i < options.Masters {
			first, end := slots*i/options.Masters, slots*(i+1)/options.Masters
			s.Do(append([]any{"CLUSTER", "ADDSLOTS"}, numbers(first, end)...)...)
		}
	}
	c.awaitKnown()
	for i, s := range c.nodes[options.Masters:] {
		s.Do("CLUSTER", "REPLICATE", c.ids[c.nodes[i%options.Masters]])
	}
	c.AwaitSettled()
	return c
}

func numbers(first, end int) []any {
	list := make([]any, 0, end-first)
	for n := first; n < end; n++ {
		list = append(list, n)
	}
	return list
}

func (c *Cluster) prepareNode() *Server {
	args := []string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-allow-replica-migration", "no",
		"--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0",
	}
	if c.options.Password != "" {
		args = append(args, "--requirepass", c.options.Password, "--masterauth", c.options.Password)
	}
	return prepare(c.t, c.options.TLS, append(args, c.options.Args...)...)
}

// join gives a node an epoch of its own, so that no two argue, and introduces it
// to the first node.
func (c *Cluster) join(s *Server) {
	c.t.Helper()
	id, ok := s.Do("CLUSTER", "MYID").(string)
	if !ok {
		c.t.Fatalf("%s has no id", s.Addr())
	}
	c.ids[s] = id
	c.epochs++
	s.Do("CLUSTER", "SET-CONFIG-EPOCH", c.epochs)
	if s != c.nodes[0] {
		s.Do("CLUSTER", "MEET", "127.0.0.1", c.nodes[0].portText())
	}
}

// Nodes are all nodes that were ever started, masters and replicas.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Addresses are the nodes'.
func (c *Cluster) Addresses() []string { return addresses(c.nodes) }

// Masters are the running masters, as the nodes see it, those without slots too.
func (c *Cluster) Masters() []*Server {
	c.t.Helper()
	return slices.DeleteFunc(slices.Clone(c.nodes), func(s *Server) bool {
		return !s.IsRunning() || c.view(s)[c.ids[s]].master != ""
	})
}

// ReplicasOf are the running replicas of a master.
func (c *Cluster) ReplicasOf(master *Server) []*Server {
	c.t.Helper()
	return slices.DeleteFunc(slices.Clone(c.nodes), func(s *Server) bool {
		return !s.IsRunning() || c.view(s)[c.ids[s]].master != c.ids[master]
	})
}

// MasterOf is the master that serves a key.
func (c *Cluster) MasterOf(key string) *Server {
	c.t.Helper()
	slot, err := c.Masters()[0].client.ClusterKeySlot(context.Background(), key).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, master := range c.Masters() {
		if slices.Contains(c.SlotsOf(master), int(slot)) {
			return master
		}
	}
	c.t.Fatalf("nobody serves slot %d", slot)
	return nil
}

// SlotsOf are the slots that a master serves, in ascending order.
func (c *Cluster) SlotsOf(master *Server) []int {
	c.t.Helper()
	return c.view(master)[c.ids[master]].slots
}

// AddNode starts a master without slots, and waits until all know it. MoveSlots
// gives it some.
func (c *Cluster) AddNode() *Server {
	c.t.Helper()
	s := c.prepareNode()
	c.nodes = append(c.nodes, s)
	s.Run()
	c.join(s)
	c.awaitKnown()
	c.AwaitSettled()
	return s
}

// FailOver has a replica take a running master's place without loss, and returns
// that replica. The master becomes its replica.
func (c *Cluster) FailOver(master *Server) *Server {
	c.t.Helper()
	replica := c.ReplicasOf(master)[0]
	replica.Do("CLUSTER", "FAILOVER")
	c.awaitTakeover(master)
	return replica
}

// KillMaster stops a master, and waits until a replica has taken its place. Run
// again, the dead master becomes a replica.
func (c *Cluster) KillMaster(master *Server) {
	c.t.Helper()
	if len(c.ReplicasOf(master)) == 0 {
		c.t.Fatal("nothing takes a master's place without replicas; stop the server instead")
	}
	master.Stop()
	c.awaitTakeover(master)
}

func (c *Cluster) awaitTakeover(master *Server) {
	c.t.Helper()
	await(c.t, "no replica takes over", func(ctx context.Context) error {
		for _, s := range c.nodes {
			if !s.IsRunning() {
				continue
			}
			view, err := c.look(ctx, s)
			if err != nil {
				return err
			}
			if len(view[c.ids[master]].slots) > 0 {
				return errors.New(s.Addr() + " still takes the old master for one")
			}
		}
		return nil
	})
	c.AwaitSettled()
}

// atOnce is how many slots MoveSlots moves together.
const atOnce = 16

// MoveSlots moves the first n slots from one master to another with their keys,
// while clients go on, and waits until all nodes agree.
func (c *Cluster) MoveSlots(from, to *Server, n int) {
	c.t.Helper()
	owned := c.SlotsOf(from)
	if len(owned) < n {
		c.t.Fatalf("%s has %d slots, fewer than %d", from.Addr(), len(owned), n)
	}
	others := slices.DeleteFunc(c.Masters(), func(s *Server) bool { return s == from || s == to })
	for some := range slices.Chunk(owned[:n], atOnce) {
		c.BeginMove(from, to, some...)
		for _, slot := range some {
			c.moveKeys(from, to, slot)
		}
		// Redis wants the new master told first.
		for _, s := range append([]*Server{to, from}, others...) {
			s.setSlots(some, "NODE", c.ids[to])
		}
	}
	c.AwaitSettled()
}

// BeginMove opens the move of slots and moves nothing yet: keys that are there
// stay, and a client that wants another one is sent to the new master with ASK.
func (c *Cluster) BeginMove(from, to *Server, slots ...int) {
	c.t.Helper()
	to.setSlots(slots, "IMPORTING", c.ids[from])
	from.setSlots(slots, "MIGRATING", c.ids[to])
}

// setSlots tells a node the same about many slots.
func (s *Server) setSlots(slots []int, what, id string) {
	s.t.Helper()
	_, err := s.client.Pipelined(context.Background(), func(pipe redis.Pipeliner) error {
		for _, slot := range slots {
			pipe.Do(context.Background(), "CLUSTER", "SETSLOT", slot, what, id)
		}
		return nil
	})
	if err != nil {
		s.t.Fatalf("%s slots at %s: %v", what, s.Addr(), err)
	}
}

func (c *Cluster) moveKeys(from, to *Server, slot int) {
	c.t.Helper()
	for {
		keys, ok := from.Do("CLUSTER", "GETKEYSINSLOT", slot, 100).([]any)
		if !ok || len(keys) == 0 {
			return
		}
		args := []any{"MIGRATE", "127.0.0.1", to.portText(), "", 0, patience.Milliseconds()}
		if c.options.Password != "" {
			args = append(args, "AUTH", c.options.Password)
		}
		from.Do(append(append(args, "KEYS"), keys...)...)
	}
}
