package backends

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

func TestStoresAreKeptReplacedAndClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStores(func(policy.Name) redisstore.Observer { return nil })
		defer s.Close()
		use := func(addresses ...string) []*limiter.Backend {
			t.Helper()
			var targets []*Target
			for _, address := range addresses {
				targets = append(targets, targetAt(address))
			}
			backends, err := s.Backends(append(targets, nil))
			if err != nil {
				t.Fatal(err)
			}
			s.Keep(backends)
			return backends
		}
		count := func() (open, leaving int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.open), len(s.leaving)
		}
		first := use("a:1", "b:1", "a:1")
		if first[0] != first[2] || first[0] == first[1] || first[3] != nil {
			t.Errorf("backends: %v", first)
		}
		if again := use("b:1", "a:1"); again[0] != first[1] || again[1] != first[0] {
			t.Error("what is unchanged is not kept")
		}
		second := use("a:1", "c:1")
		if back := use("b:1", "a:1", "c:1"); back[0] != first[1] {
			t.Error("what lingers is not used again")
		}
		if again := use("a:1", "c:1"); again[0] != second[0] || again[1] != second[1] {
			t.Error("what is used is not kept")
		}
		if open, leaving := count(); open != 2 || leaving != 1 {
			t.Errorf("%d stores are open, %d linger", open, leaving)
		}
		<-time.After(lingering) // in the bubble this waits for the timer, not the time
		synctest.Wait()
		if _, leaving := count(); leaving != 0 {
			t.Error("a store lingers for ever")
		}
		use("c:1")
	})
}

func targetAt(address string) *Target {
	t := New(policy.Name{Namespace: "shop", Name: "default"})
	t.Config.Addresses = []string{address}
	return t
}
