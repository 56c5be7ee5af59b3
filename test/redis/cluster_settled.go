package redis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// node is what one node knows about another.
type node struct {
	address string
	// master is the id of a replica's master.
	master string
	slots  []int
	// isMoving tells that the node is giving or taking slots.
	isMoving bool
}

// look reads what a node knows about all that it takes for alive, by id.
func (c *Cluster) look(ctx context.Context, s *Server) (map[string]node, error) {
	text, err := s.client.ClusterNodes(ctx).Result()
	view := map[string]node{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 8 || isGone(fields[2]) {
			continue
		}
		address, _, _ := strings.Cut(fields[1], "@")
		n := node{address: address, master: strings.TrimPrefix(fields[3], "-")}
		for _, field := range fields[8:] {
			n.add(field)
		}
		view[fields[0]] = n
	}
	return view, err
}

// isGone leaves out who is only met or known to be dead.
func isGone(flags string) bool {
	for _, flag := range strings.Split(flags, ",") {
		switch flag {
		case "fail", "handshake", "noaddr":
			return true
		}
	}
	return false
}

// add reads a slot, a range of slots, or a slot that moves.
func (n *node) add(field string) {
	if strings.HasPrefix(field, "[") {
		n.isMoving = true
		return
	}
	first, last, isRange := strings.Cut(field, "-")
	if !isRange {
		last = first
	}
	from, _ := strconv.Atoi(first)
	to, _ := strconv.Atoi(last)
	for slot := from; slot <= to; slot++ {
		n.slots = append(n.slots, slot)
	}
}

func (c *Cluster) view(s *Server) map[string]node {
	c.t.Helper()
	view, err := c.look(context.Background(), s)
	if err != nil {
		c.t.Fatal(err)
	}
	return view
}

// awaitKnown waits until every running node has met all others.
func (c *Cluster) awaitKnown() {
	c.t.Helper()
	await(c.t, "the nodes do not meet", func(ctx context.Context) error {
		for _, s := range c.nodes {
			if !s.IsRunning() {
				continue
			}
			if view, err := c.look(ctx, s); err != nil || len(view) < c.running() {
				return errors.Join(err, fmt.Errorf("%s knows %d of %d nodes", s.Addr(), len(view), c.running()))
			}
		}
		return nil
	})
}

func (c *Cluster) running() int {
	n := 0
	for _, s := range c.nodes {
		if s.IsRunning() {
			n++
		}
	}
	return n
}

// AwaitSettled waits until all running nodes serve all slots, agree on who serves
// what, move nothing, and replicas are up to date.
func (c *Cluster) AwaitSettled() {
	c.t.Helper()
	await(c.t, "the nodes do not agree", func(ctx context.Context) error {
		var agreed map[string]node
		for _, s := range c.nodes {
			if !s.IsRunning() {
				continue
			}
			view, err := c.settledView(ctx, s)
			if err != nil {
				return err
			}
			if agreed == nil {
				agreed = view
			}
			if !reflect.DeepEqual(view, agreed) {
				return fmt.Errorf("%s sees another cluster than the first node", s.Addr())
			}
		}
		return c.replicasFollow(ctx, agreed)
	})
}

// settledView is a node's view, or why that is not settled.
func (c *Cluster) settledView(ctx context.Context, s *Server) (map[string]node, error) {
	info, err := s.client.ClusterInfo(ctx).Result()
	if err != nil {
		return nil, err
	}
	if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slots)) {
		return nil, fmt.Errorf("%s says %s", s.Addr(), info)
	}
	view, err := c.look(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(view) != c.running() {
		return nil, fmt.Errorf("%s takes %d nodes for alive, want %d", s.Addr(), len(view), c.running())
	}
	if view[c.ids[s]].isMoving {
		return nil, fmt.Errorf("%s still moves slots", s.Addr())
	}
	return view, nil
}

func (c *Cluster) replicasFollow(ctx context.Context, view map[string]node) error {
	for _, s := range c.nodes {
		if !s.IsRunning() || view[c.ids[s]].master == "" {
			continue
		}
		for _, master := range c.nodes {
			if c.ids[master] != view[c.ids[s]].master {
				continue
			}
			if err := isReplica(ctx, s, master); err != nil {
				return err
			}
		}
	}
	return nil
}
