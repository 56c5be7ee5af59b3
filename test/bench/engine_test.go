//go:build bench

package bench

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/test/bench/measure"
)

// mostMatchingTime is how long it may take to match a request against however
// many rules; and it may not allocate.
const mostMatchingTime = 2 * time.Microsecond

// rules is a set of n rules, each with its own match.
func rules(tb testing.TB, n int, match func(i int) string) *policy.Set {
	tb.Helper()
	var policies []*policy.Policy
	for i := 0; i < n; i += 32 {
		spec := "  selector: {}\n  rules:\n"
		for j := i; j < min(n, i+32); j++ {
			spec += fmt.Sprintf("  - {name: r%d, limit: 1, window: 1s, match: %s}\n", j, match(j))
		}
		policies = append(policies, measure.Compile(tb, fmt.Sprintf("p%d", i), spec))
	}
	return policy.NewSet(policies)
}

// Ways to tell one rule from the next.
func byHost(i int) string { return fmt.Sprintf(`{hosts: [h%d.example.com]}`, i) }
func byPath(i int) string { return fmt.Sprintf(`{paths: [{type: Prefix, value: /api/v%d}]}`, i) }
func byPattern(i int) string {
	return fmt.Sprintf(`{paths: [{type: RegularExpression, value: "/api/v%d/.*"}]}`, i)
}

// TestMatching measures one request against many rules, of which none or one
// matches. Regular expressions are tried one by one, so they have no bound.
func TestMatching(t *testing.T) {
	table := measure.NewTable("matching one request", "rules", "matches", "time", "allocations")
	for _, c := range []struct {
		name       string
		n          int
		match      func(int) string
		host, path string
		matches    int
		bounded    bool
	}{
		{"by host", 1, byHost, "other.example.com:80", "/", 0, true},
		{"by host", 100, byHost, "other.example.com:80", "/", 0, true},
		{"by host", 10_000, byHost, "other.example.com:80", "/", 0, true},
		{"by host", 10_000, byHost, "h9876.example.com:80", "/", 1, true},
		{"by path", 1, byPath, "example.com", "/api//other/%41", 0, true},
		{"by path", 100, byPath, "example.com", "/api//other/%41", 0, true},
		{"by path", 10_000, byPath, "example.com", "/api//other/%41", 0, true},
		{"by path", 10_000, byPath, "example.com", "/api//v9876/%41", 1, true},
		{"by regular expression", 100, byPattern, "example.com", "/api//other/%41", 0, false},
	} {
		set := rules(t, c.n, c.match)
		req := &policy.Request{Method: "GET", Host: c.host, Path: c.path, Peer: netip.MustParseAddr("192.0.2.1")}
		var m policy.Matcher
		result := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set.Match(req, &m)
			}
		})
		name := fmt.Sprint(c.n, " ", c.name)
		if len(m.Matches) != c.matches {
			t.Errorf("%s: %d match, want %d", name, len(m.Matches), c.matches)
		}
		table.Row(name, c.matches, time.Duration(result.NsPerOp()), result.AllocsPerOp())
		if c.bounded {
			measure.AtMost(t, name+": nanoseconds", float64(result.NsPerOp()), float64(mostMatchingTime))
			measure.AtMost(t, name+": allocations", float64(result.AllocsPerOp()), 0)
		}
	}
	table.Print(t)
}

// TestDecisionInMemory measures one decision without a Redis.
func TestDecisionInMemory(t *testing.T) {
	decide := measure.Decide(measure.Limiter(t, memstore.New(time.Now, 0), measure.NeverReached), limiter.Allowed)
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := decide("user_123"); err != nil {
				b.Fatal(err)
			}
		}
	})
	table := measure.NewTable("one decision", "", "time", "allocations")
	table.Row("on the memory store", time.Duration(result.NsPerOp()), result.AllocsPerOp())
	table.Print(t)
}
