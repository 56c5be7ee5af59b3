//go:build faults

package faults

import (
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	redistest "github.com/weir-dev/weir/test/redis"
)

// moving is how many slots move: a quarter of all.
const moving = 4096

func TestCluster(t *testing.T) {
	with := redistest.ClusterOptions{Replicas: 1}
	without := redistest.ClusterOptions{}
	run(t, []trial{
		{fault: "4,096 slots move", hurts: noneFail, begin: cluster(without, func(c *redistest.Cluster) func() {
			masters := c.Masters()
			c.MoveSlots(masters[0], masters[1], moving)
			return nil
		})},
		{fault: "a node is added and gets slots", hurts: noneFail, begin: cluster(without, func(c *redistest.Cluster) func() {
			c.MoveSlots(c.Masters()[0], c.AddNode(), moving)
			return nil
		})},
		{fault: "a Cluster of one grows", hurts: noneFail, begin: cluster(redistest.ClusterOptions{Masters: 1}, func(c *redistest.Cluster) func() {
			c.MoveSlots(c.Masters()[0], c.AddNode(), moving)
			return nil
		})},
		{fault: "a replica takes over without loss", hurts: mayFail, begin: cluster(with, func(c *redistest.Cluster) func() {
			c.FailOver(c.Masters()[0])
			return nil
		})},
		{fault: "a master dies and a replica takes over", loses: true, begin: cluster(with, func(c *redistest.Cluster) func() {
			c.KillMaster(c.Masters()[0])
			return nil
		})},
		{fault: "a master hangs", begin: cluster(without, func(c *redistest.Cluster) func() {
			master := c.Masters()[0]
			master.Pause()
			return func() {
				master.Resume()
				c.AwaitSettled()
			}
		})},
		{fault: "scripts are flushed on every node", hurts: noneFail, begin: cluster(without, func(c *redistest.Cluster) func() {
			return flushScripts(c.Nodes()...)
		})},
	})
}

// cluster begins a trial with a Redis Cluster.
func cluster(options redistest.ClusterOptions, strike func(*redistest.Cluster) func()) func(*testing.T) *site {
	return func(t *testing.T) *site {
		c := redistest.StartCluster(t, options)
		return &site{
			servers:  len(c.Nodes()) + 1,
			config:   redisstore.Config{Mode: v1alpha1.RedisCluster, Addresses: c.Addresses()},
			strike:   func() func() { return strike(c) },
			counters: func() map[string]int64 { return countersOf(t, c.Masters()...) },
		}
	}
}
