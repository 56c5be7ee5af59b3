//go:build faults

package faults

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// TestBurstOnASlowNetworkPasses has very many callers come at once while a new
// connection takes longer than a decision may: connections must get ready all the
// same, and callers must not wait for each other.
func TestBurstOnASlowNetworkPasses(t *testing.T) {
	const callers, slow = 500, 60 * time.Millisecond
	var p pair
	s := standalone(func(begun pair) func() { p = begun; return nil })(t)
	s.strike()
	s.config.PoolSize = 10
	e := newEnforcer(t, s.config, v1alpha1.FailureDeny)
	p.way.Only(func([]string) bool { return true }) // logging in takes as long
	p.way.Delay(slow)
	w := newWitness(t)
	w.look(func() phase { return struck })
	took := make([]time.Duration, callers)
	var running sync.WaitGroup
	for i := range took {
		running.Go(func() {
			request := &policy.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1")}
			var d limiter.Decision
			began := time.Now()
			e.Decide(context.Background(), request, &d)
			took[i] = time.Since(began)
		})
	}
	running.Wait()
	w.stop()
	for _, d := range took {
		if allowed := budget + grace + w.worst(struck); d > allowed {
			t.Errorf("a decision takes %v, where %v is allowed", d, allowed)
			break
		}
	}
	p.way.Pass()
	if healed := e.awaitExact(t); healed > 2*time.Second {
		t.Errorf("exact after %v, want 2 s", healed)
	}
}
