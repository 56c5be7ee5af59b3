package cases

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// TestTwoWindowsHoldAtOnceForEachTier has accounts that may send so many at once
// and so many in a day, more of both where they pay.
func TestTwoWindowsHoldAtOnceForEachTier(t *testing.T) {
	t.Parallel()
	tier := func(name string, burst, day int) string {
		const match = "match: {headers: [{name: X-Tier, type: Exact, value: %[1]s}]}, key: [{type: Header, name: X-Account}]"
		return fmt.Sprintf("  - {name: %[1]s-burst, limit: %[2]d, window: 2s, "+match+"}\n  - {name: %[1]s-day, limit: %[3]d, window: 366d, "+match+"}\n", name, burst, day)
	}
	s := open(t, setup{}, policy("tiers", "  rules:\n"+tier("free", 5, 12)+tier("paid", 8, 20)))
	caller := s.from("127.0.0.2")
	for _, c := range []struct {
		tier string
		want []int // of twelve requests, window by window
	}{
		{"free", []int{5, 5, 2, 0}},
		{"paid", []int{8, 8, 4, 0}},
	} {
		// A window that turns too early spoils an attempt: then again with another
		// account.
		for attempt := range 5 {
			account := fmt.Sprint(c.tier, attempt)
			got, whole := s.windows(2, len(c.want), func() int {
				return caller.passed(12, "/", "X-Tier", c.tier, "X-Account", account)
			})
			if !whole && attempt < 4 {
				continue
			}
			if diff := cmp.Diff(c.want, got); diff != "" || !whole {
				t.Errorf("%s, in whole windows %v: %s", c.tier, whole, diff)
			}
			break
		}
	}
}

// windows runs a burst in each of n windows, and tells whether each stayed in its
// own.
func (s *site) windows(seconds int64, n int, burst func() int) (results []int, whole bool) {
	s.t.Helper()
	whole = true
	last := int64(0)
	for range n {
		eventually(s.t, "the window turns", func() bool { return s.window(seconds) > last })
		last = s.remaining(seconds, time.Duration(seconds)*time.Second*2/3, time.Duration(seconds)*time.Second)
		results = append(results, burst())
		whole = whole && s.window(seconds) == last
	}
	return results, whole
}

// TestOneTokenAtThreeEnforcers has 1,200 requests with one token come in by three
// enforcers.
func TestOneTokenAtThreeEnforcers(t *testing.T) {
	t.Parallel()
	s := open(t, setup{enforcers: 3}, policy("p", "  rules: [{name: r, limit: 1000, window: 366d, key: [{type: Header, name: Authorization}]}]\n"))
	const workers = 12
	remaining := make([][]int, workers) // of allowed answers, as each worker saw them
	denied := make([]int, workers)
	var group errgroup.Group
	for w := range workers {
		callers := []*caller{}
		for _, e := range s.enforcers {
			callers = append(callers, e.from(t, "127.0.0.2"))
		}
		group.Go(func() error {
			for i := range 1200 / workers {
				r, err := callers[(w+i)%len(callers)].try(http.MethodGet, "/", "Authorization", "Bearer one-token")
				if err != nil {
					return err
				}
				left, err := strconv.Atoi(r.header.Get("X-RateLimit-Remaining"))
				if err != nil || r.header.Get("X-RateLimit-Limit") != "1000" || r.header.Get("RateLimit") == "" {
					return fmt.Errorf("an answer %d without quota: %v", r.status, r.header)
				}
				switch {
				case r.status == http.StatusOK:
					remaining[w] = append(remaining[w], left)
				case r.status == http.StatusTooManyRequests && left == 0:
					denied[w]++
				default:
					return fmt.Errorf("answered %d with %d left", r.status, left)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var all []int
	refused := 0
	for w := range workers {
		if !slices.IsSortedFunc(remaining[w], func(a, b int) int { return b - a }) {
			t.Errorf("what is left rises for one caller: %v", remaining[w])
		}
		all = append(all, remaining[w]...)
		refused += denied[w]
	}
	slices.Sort(all)
	want := make([]int, 1000)
	for i := range want {
		want[i] = i
	}
	if diff := cmp.Diff(want, all); diff != "" || refused != 200 {
		t.Errorf("%d are refused, want 200; what was left: %s", refused, diff)
	}
}

// TestExemptionsAsPeopleWriteThem has a list with host bits and a bare address.
func TestExemptionsAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", behind+`  exempt:
  - {name: office, match: {clientCIDRs: [192.168.11.20/24, 8.8.8.8]}}
  rules:
  - {name: short, limit: 3, window: 1d, key: [{type: ClientIP}]}
  - {name: long, limit: 5, window: 366d, key: [{type: ClientIP}]}
`))
	proxy := s.from(balancer)
	for _, c := range []struct {
		address string
		want    int
	}{
		{"192.168.11.20", 8}, {"192.168.11.99", 8}, {"8.8.8.8", 8}, {"8.8.8.9", 3}, {"192.168.12.20", 3},
	} {
		if got := proxy.passed(8, "/", "X-Forwarded-For", c.address); got != c.want {
			t.Errorf("%s: %d of 8 pass, want %d", c.address, got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"192.168.12.20", "8.8.8.9"}, s.clients()); diff != "" {
		t.Errorf("who has counters: %s", diff)
	}
}

// TestOneCallerWithALimitOfItsOwn has a total, a limit for each caller, and
// callers with a tighter and a looser one.
func TestOneCallerWithALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	named := func(name string) string {
		return "match: {headers: [{name: X-Caller, type: Exact, value: " + name + "}]}"
	}
	const key = "key: [{type: Header, name: X-Caller}]"
	s := open(t, setup{},
		policy("total", "  rules: [{name: all, limit: 20, window: 366d}]\n"),
		policy("each", "  exempt: [{name: batch, "+named("batch")+"}]\n  rules:\n  - {name: caller, limit: 4, window: 366d, "+key+"}\n  - {name: crawler, limit: 2, window: 366d, "+named("crawler")+", "+key+"}\n"),
		policy("batch", "  rules: [{name: batch, limit: 9, window: 366d, "+named("batch")+"}]\n"),
	)
	caller := s.from("127.0.0.2")
	for _, c := range []struct {
		reason, name string
		want         int
	}{
		{"the usual limit", "web", 4},
		{"a tighter one", "crawler", 2},
		{"a looser one", "batch", 9},
		{"what is left of the total", "app", 4},
		{"and a part of a limit", "last", 1},
	} {
		if got := caller.passed(12, "/", "X-Caller", c.name); got != c.want {
			t.Errorf("%s: %d of 12 pass, want %d", c.reason, got, c.want)
		}
	}
}
