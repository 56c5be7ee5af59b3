package policy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestAMatcherKeepsNothingOfARequest(t *testing.T) {
	s := keyed(t, "{type: Header, name: X-User}, {type: Path}, {type: Host}")
	var m Matcher
	freed := make(chan struct{}, 1)
	func() {
		value := new([1 << 20]byte)
		runtime.AddCleanup(value, func(ch chan struct{}) { ch <- struct{}{} }, freed)
		text := textOf(value[:])
		s.Match(&Request{Path: text, Host: text, Header: map[string][]string{"X-User": {text}}, Peer: peer}, &m)
	}()
	for range 10 {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(&m)
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("a matcher keeps a request's memory")
}

func TestAMatcherStaysSmall(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  domain: d
  request: {pathCase: Insensitive}
  rules:
  - {name: r, limit: 1, window: 1s, key: [{type: QueryParam, name: q}, {type: Path}, {type: Host}]}
  - {name: d, limit: 1, window: 1s, match: {descriptor: [{key: d}]}}
`)})
	long := strings.Repeat("%41É;x/", 20<<10)
	var m Matcher
	s.Match(&Request{Path: "/" + long, RawQuery: "q=" + long, Host: strings.Repeat("A", 1<<20), Peer: peer}, &m)
	s.Match(&Request{Descriptors: descriptors(strings.Split(strings.Repeat("d=1;", 5000), ";")...)}, &m)
	s.Match(&Request{Path: "/"}, &m)
	if size := cap(m.view.clean) + cap(m.view.folded) + cap(m.view.hostText) + cap(m.text) + cap(m.key); size > 5*maxScratch {
		t.Errorf("%d bytes of scratch are kept", size)
	}
	if cap(m.Matches) > maxKept || len(m.Matches) != 1 {
		t.Errorf("room for %d matches is kept, %d are there", cap(m.Matches), len(m.Matches))
	}
}

func TestMatchingManyRulesAllocatesNothing(t *testing.T) {
	for kind, rule := range ruleKinds {
		s := manyRules(t, 1000, rule)
		for _, req := range []*Request{
			{Method: "GET", Host: "H7.example.com:80", Path: "/api/v7/x", Peer: peer},
			{Method: "M7", Host: "other.example.com", Path: "/a;b/../%41pi//é", Peer: peer, Header: map[string][]string{"X-Forwarded-For": {"1.1.1.1"}}},
		} {
			var m Matcher
			if allocs := testing.AllocsPerRun(100, func() { s.Match(req, &m) }); allocs > 0 {
				t.Errorf("by %s: %v allocations", kind, allocs)
			}
		}
	}
}

// ruleKinds are the ways in which the rules of a large set differ.
var ruleKinds = map[string]func(i int) string{
	"host":     func(i int) string { return fmt.Sprintf(`{hosts: [h%d.example.com]}`, i) },
	"wildcard": func(i int) string { return fmt.Sprintf(`{hosts: ["*.h%d.example.com"]}`, i) },
	"exact":    func(i int) string { return fmt.Sprintf(`{paths: [{type: Exact, value: /api/v%d}]}`, i) },
	"prefix":   func(i int) string { return fmt.Sprintf(`{paths: [{type: Prefix, value: /api/v%d}]}`, i) },
	"method":   func(i int) string { return fmt.Sprintf(`{methods: [M%d]}`, i) },
}

func BenchmarkMatchOneOfMany(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		for kind, rule := range ruleKinds {
			s := manyRules(b, n, rule)
			b.Run(fmt.Sprintf("%d by %s", n, kind), func(b *testing.B) {
				benchmarkMatch(b, s, &Request{Method: "M0", Host: "a.h0.example.com", Path: "/api/v0", Peer: peer})
			})
		}
	}
	for _, n := range []int{1, 100} {
		s := manyRules(b, n, func(i int) string {
			return fmt.Sprintf(`{paths: [{type: RegularExpression, value: "/[a-z]+/v%d/[0-9]+"}]}`, i)
		})
		b.Run(fmt.Sprintf("%d by regular expression", n), func(b *testing.B) {
			benchmarkMatch(b, s, &Request{Method: "GET", Path: "/api/v0/12345", Peer: peer})
		})
	}
}

func BenchmarkKey(b *testing.B) {
	for _, part := range []string{"{type: ClientIP}", "{type: Header, name: X-User-Id}", "{type: Header, name: Authorization}", "{type: QueryParam, name: q}"} {
		b.Run(part, func(b *testing.B) {
			benchmarkMatch(b, keyed(b, part), &Request{Method: "GET", Path: "/api/v1/users", RawQuery: "a=b&q=text", Peer: peer, Header: map[string][]string{"X-User-Id": {"user_123"}, "Authorization": {"Bearer abcdefgh"}}})
		})
	}
}

func benchmarkMatch(b *testing.B, s *Set, req *Request) {
	var m Matcher
	b.ReportAllocs()
	for b.Loop() {
		s.Match(req, &m)
	}
}
