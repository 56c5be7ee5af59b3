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
// limit is exact. Each has a policy, so that failures are told apart.
const (
	manifest = `{"metadata": {"namespace": "shop", "name": %[1]q}, "spec": {"selector": {}, "failureMode": %[2]q, "rules": [
		{"name": "r", "match": {"methods": [%[3]q]}, "limit": %[4]d, "window": "366d", "key": [{"type": "ClientIP"}]}]}}`
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
	doubts *doubts
}

func newEnforcer(t *testing.T, config redisstore.Config, mode v1alpha1.FailureMode) *enforcer {
	t.Helper()
	return enforce(t, config, mode, budget,
		fmt.Sprintf(manifest, "load", mode, "GET", loadLimit), fmt.Sprintf(manifest, "exact", mode, "POST", exactLimit))
}

// enforce starts an enforcer of policies, whose decisions may take that long.
func enforce(t *testing.T, config redisstore.Config, mode v1alpha1.FailureMode, budget time.Duration, texts ...string) *enforcer {
	t.Helper()
	var policies []*policy.Policy
	for _, text := range texts {
		decoded, err := policy.DecodePolicy([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := policy.Compile(decoded, policy.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, compiled)
	}
	config.Timeout = budget
	store, err := redisstore.New(config)
	if err != nil {
		t.Fatal(err)
	}
	e := &enforcer{mode: mode, client: netip.MustParseAddr("198.18.0.0"), doubts: new(doubts)}
	e.Limiter = limiter.New(limiter.Options{Observer: e.doubts})
	snapshot := &limiter.Snapshot{Set: policy.NewSet(policies), Backends: make([]*limiter.Backend, len(policies))}
	for _, p := range snapshot.Set.Policies() {
		snapshot.Backends[p.Index] = &limiter.Backend{
			Name: p.Name, Store: store, Budget: budget, Sharded: config.Mode == v1alpha1.RedisCluster,
		}
	}
	e.Swap(snapshot)
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
