//go:build faults

package faults

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
	redistest "github.com/weir-dev/weir/test/redis"
)

// TestRulesOfAClientShareASlot sends requests of very many clients, each counted
// by two rules, and none may meet keys that are on different servers.
func TestRulesOfAClientShareASlot(t *testing.T) {
	const many, requests, limit, patience = 1000, 5, 3, 10 * time.Second
	spec := fmt.Sprintf(`{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"selector": {}, "failureMode": "Deny", "rules": [
		{"name": "short", "limit": %d, "window": "366d", "key": [{"type": "ClientIP"}]},
		{"name": "long", "limit": 250, "window": "365d", "key": [{"type": "ClientIP"}]}]}}`, limit)
	for _, masters := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d masters", masters), func(t *testing.T) {
			c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: masters})
			e := enforce(t, siteOf(t, c).config, v1alpha1.FailureDeny, patience, spec)
			request := &policy.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("2001:db8::1")}
			outcomes := map[limiter.Outcome]int{}
			var d limiter.Decision
			for range many {
				for range requests {
					e.Decide(context.Background(), request, &d)
					outcomes[d.Outcome]++
				}
				// Another /64, which is what counts as a client.
				next := request.Peer.As16()
				if next[7]++; next[7] == 0 {
					next[6]++
				}
				request.Peer = netip.AddrFrom16(next)
			}
			if outcomes[limiter.Allowed] != many*limit || outcomes[limiter.Denied] != many*(requests-limit) {
				t.Errorf("outcomes %v, want %d allowed and %d denied", outcomes, many*limit, many*(requests-limit))
			}
			if n := errorsOf(t, c.Nodes(), "CROSSSLOT", "ERR"); n > 0 {
				t.Errorf("%d calls met keys of another server", n)
			}
		})
	}
}
