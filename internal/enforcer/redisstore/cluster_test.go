package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	redistest "github.com/weir-dev/weir/test/redis"
)

func newClusterStore(t testing.TB, c *redistest.Cluster) *Store {
	t.Helper()
	s, err := New(Config{Mode: v1alpha1.RedisCluster, Addresses: c.Addresses(), Timeout: 20 * time.Second, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// tagged gives all keys one tag, as limiter does for the keys of one operation.
type tagged struct{ *Store }

func (s tagged) Do(ctx context.Context, batch []*limiter.Op) {
	for _, op := range batch {
		for i := range op.Checks {
			op.Checks[i].Key = "{t}:" + op.Checks[i].Key
		}
	}
	s.Store.Do(ctx, batch)
}

// attemptsOf is what a counter holds, and its mark.
func attemptsOf(t *testing.T, s *Store, key string) (attempts, denied int64) {
	t.Helper()
	key = windowKey(key)
	attempts, _ = s.client.Get(t.Context(), key).Int64()
	denied, _ = s.client.Get(t.Context(), key+":denied").Int64()
	return attempts, denied
}

func TestStoreOnCluster(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 3})
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		for _, master := range c.Masters() {
			master.Client().FlushAll(t.Context())
		}
		return storetest.Harness{Store: tagged{newClusterStore(t, c)}, Delete: func(key string) {
			whole := windowKey("{t}:" + key)
			c.MasterOf(whole).Client().Del(t.Context(), whole)
		}}
	})
}

// callers charge counters until they have made so many decisions each.
func callers(t *testing.T, s *Store, n, each, keys int, limit int64) (admitted []atomic.Int64) {
	t.Helper()
	admitted = make([]atomic.Int64, keys)
	var all sync.WaitGroup
	for caller := range n {
		all.Go(func() {
			for i := range each {
				at := (caller*each + i) % keys
				if op := storetest.Do(t, s, limiter.Charge, storetest.Check(fmt.Sprintf("{user_%d}:", at), limit)); !op.Denied {
					admitted[at].Add(1)
				}
			}
		})
	}
	all.Wait()
	return admitted
}

func TestClusterCountsOnAllMasters(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 3})
	const keys, limit = 300, 10
	s := newClusterStore(t, c)
	admitted := callers(t, s, 64, 100, keys, limit)
	for i := range admitted {
		key := fmt.Sprintf("{user_%d}:", i)
		attempts, denied := attemptsOf(t, s, key)
		if admitted[i].Load() != limit || attempts-denied != limit {
			t.Errorf("%s: %d admitted, %d attempts, %d denied", key, admitted[i].Load(), attempts, denied)
		}
	}
	for _, master := range c.Masters() {
		if n := master.Client().DBSize(t.Context()).Val(); n < keys/6 {
			t.Errorf("a master has %d keys", n)
		}
	}
}

func TestScriptsThatAreGoneComeBack(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 3})
	s := newClusterStore(t, c)
	callers(t, s, 8, 50, 100, 1000)
	for _, master := range c.Masters() {
		master.Client().ScriptFlush(t.Context())
	}
	callers(t, s, 8, 50, 100, 1000)
	sum := int64(0)
	for i := range 100 {
		attempts, _ := attemptsOf(t, s, fmt.Sprintf("{user_%d}:", i))
		sum += attempts
	}
	if sum != 800 {
		t.Errorf("%d attempts for 800 requests", sum)
	}
}

func TestMovingSlotsAreCountedOnce(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 2})
	s := newClusterStore(t, c)
	const keys, limit = 200, 30
	var moved sync.WaitGroup
	moved.Go(func() {
		masters := c.Masters()
		c.MoveSlots(masters[0], masters[1], 300)
	})
	done := make(chan struct{})
	go func() {
		moved.Wait()
		close(done)
	}()
	total := make([]int64, keys)
	requests := 0
	for moving := true; moving || requests < 2*limit*keys; {
		select {
		case <-done:
			moving = false
		default:
		}
		admitted := callers(t, s, 20, keys, keys, limit)
		requests += 20 * keys
		for i := range admitted {
			total[i] += admitted[i].Load()
		}
	}
	for i, n := range total {
		if n != limit {
			t.Errorf("user_%d: %d admitted, want %d", i, n, limit)
		}
	}
}

func TestSlotOnItsWayIsDecided(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 2})
	s := newClusterStore(t, c)
	key := func(name string) limiter.Check { return storetest.Check("{here}:"+name, 3) }
	storetest.Do(t, s, limiter.Charge, key("old:"))
	from := c.MasterOf("{here}")
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	c.BeginMove(from, to, int(slot("{here}")))

	// A counter that is there, one that is new, and both together.
	for _, step := range []struct {
		checks []limiter.Check
		denied bool
	}{
		{[]limiter.Check{key("old:")}, false},
		{[]limiter.Check{key("new:")}, false},
		{[]limiter.Check{key("old:"), key("new:")}, false},
		{[]limiter.Check{key("old:")}, true},
		{[]limiter.Check{key("new:"), key("old:")}, true},
		{[]limiter.Check{key("new:")}, false},
		{[]limiter.Check{key("new:")}, true},
	} {
		if op := storetest.Do(t, s, limiter.Charge, step.checks...); op.Denied != step.denied {
			t.Errorf("%+v: denied %v, want %v", op.Checks, op.Denied, step.denied)
		}
	}
	if op := storetest.Do(t, s, limiter.Look, key("old:")); op.Checks[0].Admitted != 3 {
		t.Errorf("a look sees %d", op.Checks[0].Admitted)
	}
	storetest.Do(t, s, limiter.Refund, key("old:"))
	if op := storetest.Do(t, s, limiter.Charge, key("old:")); op.Denied {
		t.Error("denied although one was given back")
	}
}

func TestClusterFollowsItsMasters(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 3, Replicas: 1})
	s := newClusterStore(t, c)
	callers(t, s, 8, 50, 100, 1000)
	for _, master := range c.Masters() {
		c.FailOver(master)
	}
	callers(t, s, 8, 50, 100, 1000)
	sum := int64(0)
	for i := range 100 {
		attempts, _ := attemptsOf(t, s, fmt.Sprintf("{user_%d}:", i))
		sum += attempts
	}
	if sum > 800 {
		t.Errorf("%d attempts for 800 requests", sum)
	}
}
