//go:build faults

package faults

import (
	"context"
	"strconv"
	"strings"
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
		{fault: "a master hangs and the others go on", begin: oneHangs},
		{fault: "a master hangs and the Cluster gives up", begin: cluster(without, func(c *redistest.Cluster) func() {
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

// oneHangs begins a trial with a Cluster that serves what slots it can.
func oneHangs(t *testing.T) *site {
	options := redistest.ClusterOptions{Args: []string{"--cluster-require-full-coverage", "no"}}
	c := redistest.StartCluster(t, options)
	s := siteOf(t, c)
	master := c.Masters()[0]
	isOn := map[string]bool{}
	for _, client := range addresses() {
		isOn[client.String()] = c.MasterOf("{"+client.String()+"}") == master
	}
	s.spares = func(client string) bool { return !isOn[client] }
	s.strike = func() func() {
		master.Pause()
		return func() {
			master.Resume()
			c.AwaitSettled()
		}
	}
	return s
}

// cluster begins a trial with a Redis Cluster.
func cluster(options redistest.ClusterOptions, strike func(*redistest.Cluster) func()) func(*testing.T) *site {
	return func(t *testing.T) *site {
		c := redistest.StartCluster(t, options)
		s := siteOf(t, c)
		s.strike = func() func() { return strike(c) }
		return s
	}
}

func siteOf(t *testing.T, c *redistest.Cluster) *site {
	return &site{
		servers:   len(c.Nodes()) + 1,
		config:    redisstore.Config{Mode: v1alpha1.RedisCluster, Addresses: c.Addresses()},
		counters:  func() map[string]int64 { return countersOf(t, c.Masters()...) },
		redirects: func() int64 { return errorsOf(t, c.Nodes(), "MOVED", "ASK") },
	}
}

// errorsOf is how often running servers have answered with errors of some kinds.
func errorsOf(t *testing.T, servers []*redistest.Server, kinds ...string) (total int64) {
	t.Helper()
	for _, s := range servers {
		if !s.IsRunning() {
			continue
		}
		info, err := s.Info(context.Background(), "errorstats")
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			n, _ := strconv.ParseInt(strings.TrimPrefix(info["errorstat_"+kind], "count="), 10, 64)
			total += n
		}
	}
	return total
}
