package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// flood sends n requests by each enforcer at the same time and tells how many are
// let through in sum.
func (s *site) flood(n int, fields ...string) (passed int) {
	s.t.Helper()
	var group errgroup.Group
	allowed := make([]int, len(s.enforcers))
	for i, e := range s.enforcers {
		caller := e.from(s.t, "127.0.0.2")
		group.Go(func() error {
			for range n {
				r, err := caller.try("GET", "/", fields...)
				switch {
				case err != nil:
					return err
				case r.status == 200:
					allowed[i]++
				case r.status != 429:
					return fmt.Errorf("answered %d", r.status)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		s.t.Fatal(err)
	}
	for _, n := range allowed {
		passed += n
	}
	return passed
}

func TestSeveralEnforcersFollowEditsTogether(t *testing.T) {
	t.Parallel()
	s := open(t, setup{enforcers: 3}, policy("p", perUser(100)))
	labelled := func(i int) string {
		return strings.Replace(policy("p", perUser(150)), "namespace: shop}", fmt.Sprintf("namespace: shop, labels: {edit: e%d}}", i), 1)
	}
	for _, step := range []struct {
		reason   string
		policies string
		want     int
	}{
		{"three enforcers share a limit", "", 100},
		{"a raised limit admits the difference, in sum", policy("p", perUser(150)), 50},
		{"a lowered limit denies at once", policy("p", perUser(20)), 0},
		{"back to what it was: nothing is left", policy("p", perUser(150)), 0},
		{"a label changes nothing", labelled(0), 0},
		{"one more is one more", policy("p", perUser(151)), 1},
	} {
		if step.policies != "" {
			s.edit(step.policies)
		}
		if got := s.flood(60, "X-User-Id", "bob"); got != step.want {
			t.Errorf("%s: %d of 180 pass, want %d", step.reason, got, step.want)
		}
	}
	s.wantAttempts(map[string]int{"bob": 6 * 180})
}

func TestEditsThatDoNotTouchALimitRefillNothing(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", perUser(5)))
	caller := s.from("127.0.0.2")
	passed := caller.passed(3, "/", "X-User-Id", "bob")
	for i := range 50 {
		s.edit(strings.Replace(policy("p", perUser(5)), "namespace: shop}", fmt.Sprintf("namespace: shop, labels: {edit: e%d}}", i), 1))
		if i%10 == 0 {
			passed += caller.passed(1, "/", "X-User-Id", "bob")
		}
	}
	// An enforcer that begins anew finds the same counters.
	passed += s.enforce(t).from(t, "127.0.0.2").passed(3, "/", "X-User-Id", "bob")
	if passed != 5 {
		t.Errorf("%d requests pass, want 5", passed)
	}
}

// TestAShorterWindowHoldsAtOnce edits a window of which much is left: nobody waits
// for its end.
func TestAShorterWindowHoldsAtOnce(t *testing.T) {
	t.Parallel()
	window := func(length string) string {
		return policy("p", strings.Replace(perUser(3), "366d", length, 1))
	}
	s := open(t, setup{}, window("1d"))
	caller := s.from("127.0.0.2")
	if got := caller.passed(5, "/", "X-User-Id", "bob"); got != 3 {
		t.Errorf("%d of 5 pass, want 3", got)
	}
	s.edit(window("4s"))
	number := s.remaining(4, 3*time.Second, 4*time.Second)
	r := caller.get("/", "X-User-Id", "bob")
	if r.status != 200 || r.header.Get("X-RateLimit-Remaining") != "2" || r.header.Get("X-RateLimit-Reset") != fmt.Sprint((number+1)*4) {
		t.Errorf("after the edit: %d, %v", r.status, r.header)
	}
	caller.passed(3, "/", "X-User-Id", "bob")
	eventually(t, "the short window turns", func() bool { return s.window(4) > number })
	if got := caller.passed(1, "/", "X-User-Id", "bob"); got != 1 {
		t.Error("the window after is full")
	}
}
