package limiter_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/policy"
)

// cluster is a store that refuses what a Redis Cluster would: an operation whose
// keys have different tags.
type cluster struct {
	*memstore.Store
	t     testing.TB
	mu    sync.Mutex
	kinds []limiter.Kind
}

func (c *cluster) Do(ctx context.Context, batch []*limiter.Op) {
	c.mu.Lock()
	for _, op := range batch {
		c.kinds = append(c.kinds, op.Kind)
		for _, check := range op.Checks {
			if tag(check.Key) != tag(op.Checks[0].Key) {
				c.t.Errorf("%s and %s in one operation", op.Checks[0].Key, check.Key)
			}
		}
	}
	c.mu.Unlock()
	c.Store.Do(ctx, batch)
}

func tag(key string) string { return key[strings.Index(key, "{"):strings.Index(key, "}")] }

func TestShardedBackendIsAskedByTag(t *testing.T) {
	text, err := yaml.YAMLToJSON([]byte(`{metadata: {namespace: shop, name: p}, spec: {domain: d, rules: [
	  {name: second, limit: 2, window: 1s, key: [{type: Header, name: X-User-Id}]},
	  {name: day, limit: 100, window: 1d, key: [{type: Header, name: X-User-Id}]},
	  {name: all, limit: 3, window: 1d}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := policy.DecodePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := policy.Compile(spec, policy.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	store := &cluster{Store: memstore.New(func() time.Time { return time.Unix(1_796_076_000, 0) }, 0), t: t}
	l := limiter.New(limiter.Options{})
	defer l.Close()
	l.Swap(&limiter.Snapshot{Set: policy.NewSet([]*policy.Policy{compiled}), Backends: []*limiter.Backend{{Store: store, Budget: time.Second, Sharded: true}}})

	var outcomes []limiter.Outcome
	for _, user := range []string{"a", "a", "a", "b", "b", "c"} {
		var d limiter.Decision
		l.Decide(t.Context(), &policy.Request{Method: "GET", Path: "/", Header: map[string][]string{"X-User-Id": {user}}}, &d)
		outcomes = append(outcomes, d.Outcome)
		if len(d.Quotas) != 3 {
			t.Errorf("%d quotas for %s, want those of all rules", len(d.Quotas), user)
		}
	}
	// a's third is denied by its own second and charged nowhere else; so b's first
	// is the third of all, and nobody passes after it.
	want := []limiter.Outcome{limiter.Allowed, limiter.Allowed, limiter.Denied, limiter.Allowed, limiter.Denied, limiter.Denied}
	for i := range want {
		if outcomes[i] != want[i] {
			t.Fatalf("outcomes %v, want %v", outcomes, want)
		}
	}
	if store.kinds[0] != limiter.Look || store.kinds[1] != limiter.Look {
		t.Errorf("the first operations are %v, want a look at each tag", store.kinds[:2])
	}
}
