//go:build faults

package faults

import (
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	redistest "github.com/weir-dev/weir/test/redis"
)

// Replicas are behind by what was not sent yet, so a counter may come back as it
// was a moment earlier.
func TestSentinel(t *testing.T) {
	run(t, []trial{
		{fault: "a failover while the old primary is well", hurts: mayFail, loses: true, begin: sentinel(func(g *redistest.Sentinels) func() {
			g.Failover()
			return nil
		})},
		{fault: "the primary dies", loses: true, begin: sentinel(func(g *redistest.Sentinels) func() {
			g.KillPrimary()
			return nil
		})},
		{fault: "the primary hangs and comes back as a replica", loses: true, begin: sentinel(func(g *redistest.Sentinels) func() {
			old := g.Primary()
			old.Pause()
			g.AwaitOtherThan(old)
			old.Resume()
			g.AwaitSettled()
			return nil
		})},
		{fault: "the Sentinel that was asked dies", hurts: noneFail, begin: sentinel(func(g *redistest.Sentinels) func() {
			g.Sentinels()[0].Stop()
			return func() { g.Sentinels()[0].Run() }
		})},
	})
}

// sentinel begins a trial with a primary, its replicas and Sentinels.
func sentinel(strike func(*redistest.Sentinels) func()) func(*testing.T) *site {
	return func(t *testing.T) *site {
		g := redistest.StartSentinels(t, redistest.SentinelOptions{Password: "data", SentinelPassword: "watch"})
		return &site{
			servers: len(g.Data()),
			config: redisstore.Config{
				Mode: v1alpha1.RedisSentinel, Addresses: g.Addresses(), Password: "data",
				Sentinel: redisstore.Sentinel{Master: redistest.MasterName, Password: "watch"},
			},
			strike:   func() func() { return strike(g) },
			counters: func() map[string]int64 { return countersOf(t, g.Primary()) },
		}
	}
}
