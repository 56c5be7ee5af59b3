//go:build faults

package faults

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// GET is the load, which is never over its limit; POST is what tells whether a
// limit is exact.
const (
	manifest = `{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"selector": {}, "failureMode": %q, "rules": [
		{"name": "load", "match": {"methods": ["GET"]}, "limit": %d, "window": "366d", "key": [{"type": "ClientIP"}]},
		{"name": "exact", "match": {"methods": ["POST"]}, "limit": %d, "window": "366d", "key": [{"type": "ClientIP"}]}]}}`
	loadLimit  = 1 << 40
	exactLimit = 10
	// exactClients are the clients of one try.
	exactClients = 16
)

// enforcer decides as an enforcer's process does.
type enforcer struct {
	*limiter.Limiter
	mode v1alpha1.FailureMode
	// client is the last client that asked whether decisions are exact.
	client netip.Addr
}

func newEnforcer(t *testing.T, config redisstore.Config, mode v1alpha1.FailureMode) *enforcer {
	t.Helper()
	return enforce(t, config, fmt.Sprintf(manifest, mode, loadLimit, exactLimit), mode, budget)
}

// enforce starts an enforcer of one policy, whose decisions may take that long.
func enforce(t *testing.T, config redisstore.Config, text string, mode v1alpha1.FailureMode, budget time.Duration) *enforcer {
	t.Helper()
	decoded, err := policy.DecodePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := policy.Compile(decoded, policy.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = budget
	store, err := redisstore.New(config)
	if err != nil {
		t.Fatal(err)
	}
	e := &enforcer{limiter.New(limiter.Options{}), mode, netip.MustParseAddr("198.18.0.0")}
	e.Swap(&limiter.Snapshot{
		Set: policy.NewSet([]*policy.Policy{compiled}),
		Backends: []*limiter.Backend{{
			Store: store, Budget: budget, Sharded: config.Mode == v1alpha1.RedisCluster,
		}},
	})
	t.Cleanup(func() {
		e.Close()
		_ = store.Close()
	})
	return e
}

// awaitExact returns how long it took until twice the limit's worth of requests of
// some clients was decided without a failure. Exactly the limit must be admitted.
func (e *enforcer) awaitExact(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < healing {
		failed := false
		for _, v := range e.tryExact() {
			failed = failed || v.failed > 0
			if v.admitted > exactLimit || v.failed == 0 && v != (votes{admitted: exactLimit, denied: exactLimit}) {
				t.Errorf("a limit of %d admits %d and denies %d", exactLimit, v.admitted, v.denied)
			}
		}
		if !failed {
			return time.Since(began)
		}
		<-time.After(budget)
	}
	t.Errorf("decisions are not exact after %v", healing)
	return healing
}

// votes are what became of one client's requests.
type votes struct{ admitted, denied, failed int }

// tryExact sends requests of clients that were never seen before, so many that
// every node of a Cluster has some. Each client sends several at once.
func (e *enforcer) tryExact() [exactClients]votes {
	const callers = 4
	var mu sync.Mutex
	var tally [exactClients]votes
	var running sync.WaitGroup
	for i := range tally {
		e.client = e.client.Next()
		request := &policy.Request{Method: "POST", Path: "/", Peer: e.client}
		for range callers {
			running.Go(func() {
				var d limiter.Decision
				for range 2 * exactLimit / callers {
					e.Decide(context.Background(), request, &d)
					mu.Lock()
					tally[i].add(&d)
					mu.Unlock()
				}
			})
		}
	}
	running.Wait()
	return tally
}

func (v *votes) add(d *limiter.Decision) {
	switch {
	case len(d.Quotas) == 0:
		v.failed++
	case d.Outcome == limiter.Allowed:
		v.admitted++
	default:
		v.denied++
	}
}
