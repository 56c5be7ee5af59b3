//go:build faults

package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	redistest "github.com/weir-dev/weir/test/redis"
)

// books are what the servers have counted, what has reached them, and what is in
// doubt.
type books struct {
	counters  map[string]int64
	delivered int64
	doubts    int64
}

func readBooks(s *site, e *enforcer) books {
	b := books{counters: s.counters(), doubts: e.doubts.Load()}
	if s.delivered != nil {
		b.delivered = s.delivered()
	}
	return b
}

func (b books) total() (total int64) {
	for _, n := range b.counters {
		total += n
	}
	return total
}

// isLoad tells a counter of the load from its mark and from other keys.
func isLoad(key string) bool {
	return strings.Contains(key, "}:shop/load/") && !strings.HasSuffix(key, ":denied")
}

// countersOf reads the counters of the load on masters, by client.
func countersOf(t *testing.T, masters ...*redistest.Server) map[string]int64 {
	t.Helper()
	counters := map[string]int64{}
	for _, master := range masters {
		keys, err := master.Client().Keys(context.Background(), "*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if !isLoad(key) {
				continue
			}
			n, err := master.Client().Get(context.Background(), key).Int64()
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(key, "{")
			client, _, _ := strings.Cut(rest, "}")
			counters[client] += n
		}
	}
	return counters
}

// judgeBooks compares what was counted with what clients saw. What failed may
// have been counted, once; its call may even be under way still.
func (l *load) judgeBooks(t *testing.T, tr trial, s *site, begun books) {
	t.Helper()
	var problem error
	for began := time.Now(); time.Since(began) < healing; <-time.After(budget) {
		if problem = l.compareBooks(tr, s, begun); problem == nil {
			return
		}
	}
	t.Error(problem)
}

func (l *load) compareBooks(tr trial, s *site, begun books) error {
	now := readBooks(s, l.enforcer)
	var decided int64
	for i := range l.clients {
		c := &l.clients[i]
		var counted, failed int64
		for p := range phases {
			counted += c.counted[p]
			failed += c.failed[p]
		}
		decided += counted
		had, has := begun.counters[c.address.String()], now.counters[c.address.String()]
		switch {
		case has > had+counted+failed:
			return fmt.Errorf("client %s is charged %d, for %d decisions and %d failures: some twice", c.address, has-had, counted, failed)
		case !tr.loses && has < had+counted:
			return fmt.Errorf("client %s is charged %d, for %d decisions: some not at all", c.address, has-had, counted)
		case !tr.loses && c.repeated > 0:
			return fmt.Errorf("client %s was told %d times that as much is left as before", c.address, c.repeated)
		}
	}
	counted, doubts := now.total()-begun.total(), now.doubts-begun.doubts
	if counted > decided+doubts {
		return fmt.Errorf("%d are charged, for %d decisions and %d in doubt: some twice", counted, decided, doubts)
	}
	delivered := now.delivered - begun.delivered
	if tr.delivers && counted != delivered {
		return fmt.Errorf("%d requests reached the servers, and %d are counted", delivered, counted)
	}
	return nil
}
