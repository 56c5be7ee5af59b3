package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// compileYAML compiles a policy whose spec is written as in a manifest.
func compileYAML(t testing.TB, name, spec string) *Policy {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("metadata: {namespace: shop, name: " + name + "}\nspec:\n" + spec))
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodePolicy(data)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := Compile(p, Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// keysOf are the keys under which a request is counted.
func keysOf(t testing.TB, s *Set, req *Request) []string {
	t.Helper()
	var m Matcher
	s.Match(req, &m)
	keys := []string{}
	for _, match := range m.Matches {
		keys = append(keys, match.Key)
	}
	return keys
}

var peer = netip.MustParseAddr("192.0.2.1")

func TestKeyIsTheDocumentedOne(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "storefront", `
  selector: {}
  rules:
  - {name: per-user, limit: 100, window: 1m, key: [{type: Header, name: X-User-Id}]}
  - {name: all, limit: 5, window: 1h}
`)})
	for _, c := range []struct {
		reason string
		header map[string][]string
		want   string
	}{
		{"a plain value is readable", map[string][]string{"X-User-Id": {"user_123"}}, "rl:{user_123}:shop/storefront/per-user:60:"},
		{"a missing value is counted by address", nil, "rl:{ip=192.0.2.1}:shop/storefront/per-user:60:"},
		{"a blank value is missing", map[string][]string{"X-User-Id": {" "}}, "rl:{ip=192.0.2.1}:shop/storefront/per-user:60:"},
		{"a repeated value is missing", map[string][]string{"X-User-Id": {"a", "b"}}, "rl:{ip=192.0.2.1}:shop/storefront/per-user:60:"},
		{"a value cannot pass for a fallback", map[string][]string{"X-User-Id": {"ip=192.0.2.1"}}, "rl:{ip%3D192.0.2.1}:shop/storefront/per-user:60:"},
		{"braces never reach the tag", map[string][]string{"X-User-Id": {"{a}\x00é"}}, "rl:{%7Ba%7D%00%C3%A9}:shop/storefront/per-user:60:"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			keys := keysOf(t, s, &Request{Method: "GET", Path: "/", Header: c.header, Peer: peer})
			if len(keys) != 2 || keys[0] != c.want || keys[1] != "rl:{shop/storefront}:shop/storefront/all:3600:" {
				t.Errorf("keys %q, want %q first", keys, c.want)
			}
		})
	}
}

func TestRuleMatches(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  selector: {}
  exempt: [{name: probes, match: {paths: [{type: Exact, value: /healthz}]}}]
  rules:
  - name: r
    limit: 1
    window: 1s
    match:
      hosts: [shop.example.com, "*.shop.example.com"]
      methods: [GET, POST]
      paths: [{type: Prefix, value: /api}, {type: Exact, value: /login}, {type: RegularExpression, value: "/v[0-9]+/.*"}, {type: Exact, value: /healthz}]
      headers: [{name: x-tier, type: Exact, value: gold}]
      clientCIDRs: [192.0.2.5/24]
`)})
	gold := map[string][]string{"X-Tier": {"gold"}}
	for _, c := range []struct {
		reason string
		req    Request
		want   bool
	}{
		{"all holds", Request{Method: "GET", Host: "shop.example.com", Path: "/api/x", Header: gold}, true},
		{"the host has capitals, a port and a dot", Request{Method: "GET", Host: "SHOP.example.com.:8080", Path: "/api", Header: gold}, true},
		{"a wildcard is one label", Request{Method: "GET", Host: "a.shop.example.com", Path: "/api", Header: gold}, true},
		{"a wildcard is two labels", Request{Method: "GET", Host: "b.a.shop.example.com", Path: "/api", Header: gold}, true},
		{"a wildcard is not no label", Request{Method: "GET", Host: ".shop.example.com", Path: "/api", Header: gold}, false},
		{"another host", Request{Method: "GET", Host: "example.com", Path: "/api", Header: gold}, false},
		{"another method", Request{Method: "get", Host: "shop.example.com", Path: "/api", Header: gold}, false},
		{"a prefix is whole segments", Request{Method: "GET", Host: "shop.example.com", Path: "/apis", Header: gold}, false},
		{"an exact path", Request{Method: "POST", Host: "shop.example.com", Path: "/a/../login/", Header: gold}, true},
		{"an expression is anchored", Request{Method: "POST", Host: "shop.example.com", Path: "/x/v1/a", Header: gold}, false},
		{"an expression holds", Request{Method: "POST", Host: "shop.example.com", Path: "/v12/a", Header: gold}, true},
		{"another header", Request{Method: "GET", Host: "shop.example.com", Path: "/api"}, false},
		{"an exemption", Request{Method: "GET", Host: "shop.example.com", Path: "/healthz", Header: gold}, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.req.Peer = peer
			if got := len(keysOf(t, s, &c.req)) == 1; got != c.want {
				t.Errorf("matches: %v, want %v", got, c.want)
			}
		})
	}
}

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "/",
		"*":                   "*",
		"/":                   "/",
		"/api/login":          "/api/login",
		"/api//login":         "/api/login",
		"/api/./login":        "/api/login",
		"/api/login/":         "/api/login/",
		"/api/%6Cogin":        "/api/login",
		"/x/../api/login":     "/api/login",
		"/x/%2e%2E/api/login": "/api/login",
		"/../../a":            "/a",
		"/a/..":               "/",
		"/a/b/.":              "/a/b/",
		"/a;x=1/b;y":          "/a/b",
		"/a/..;x/b":           "/b",
		"/a%2fb":              "/a%2Fb",
		"/a%5cb":              "/a%5Cb",
		"/a%252Fb":            "/a%252Fb",
		"/a%3Bb":              "/a%3Bb",
		"/a%zz%":              "/a%25zz%25",
		"a/b":                 "/a/b",
		"/.hidden/...":        "/.hidden/...",
	} {
		if got := CleanPath(in); got != want {
			t.Errorf("CleanPath(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{"/", "/a/../b;c=1//%2e%2E/%2f%25", "*", "%", "/%3B;/..;/."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		clean := CleanPath(path)
		if again := CleanPath(clean); again != clean {
			t.Errorf("%q is cleaned to %q, and that to %q", path, clean, again)
		}
		if clean != "*" && clean[0] != '/' {
			t.Errorf("%q is cleaned to %q", path, clean)
		}
		if len(clean) > 3*len(path)+1 {
			t.Errorf("%d bytes grow to %d", len(path), len(clean))
		}
	})
}

func FuzzForwardedFor(f *testing.F) {
	f.Add("203.0.113.9:51234", "[2001:db8::1]:443, unknown")
	f.Add(",,", "::ffff:192.0.2.1, fe80::1%eth0")
	resolver, err := NewClientResolver(&v1alpha1.ClientAddress{TrustedProxies: []v1alpha1.AddressRange{"192.0.2.0/24"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		req := &Request{Peer: peer, Header: map[string][]string{"X-Forwarded-For": {one, two}}}
		client, ignored := resolver.Resolve(req)
		if !client.IsValid() || client.Is4In6() || client.Zone() != "" || ignored {
			t.Errorf("client %v, ignored %v", client, ignored)
		}
		untrusted := *req
		untrusted.Peer = netip.MustParseAddr("198.51.100.1")
		if client, ignored := resolver.Resolve(&untrusted); client != untrusted.Peer || !ignored {
			t.Errorf("an untrusted peer chose %v", client)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add("user_123", "a", "ip=192.0.2.1", "b")
	f.Add("a,b", "", "a", ",b")
	p := compileYAML(f, "p", `
  selector: {}
  rules:
  - {name: r, limit: 1, window: 1s, key: [{type: Header, name: A}, {type: QueryParam, name: q, onMissing: Shared}]}
`)
	s := NewSet([]*Policy{p})
	f.Fuzz(func(t *testing.T, a1, q1, a2, q2 string) {
		key := func(a, q string) (string, [2]string) {
			query := make([]byte, 0, 3*len(q))
			for i := range len(q) {
				query = appendEscaped(query, q[i])
			}
			keys := keysOf(t, s, &Request{Path: "/", Peer: peer, RawQuery: "q=" + string(query), Header: map[string][]string{"A": {a}}})
			return keys[0], [2]string{orMissing(strings.Trim(a, " \t")), orMissing(q)}
		}
		key1, parts1 := key(a1, q1)
		key2, parts2 := key(a2, q2)
		if (key1 == key2) != (parts1 == parts2) {
			t.Errorf("%q and %q have keys %q and %q", parts1, parts2, key1, key2)
		}
		tag := key1[len("rl:{") : len(key1)-len("}:shop/p/r:1:")]
		for i := range len(tag) {
			if tag[i] <= ' ' || tag[i] > '~' || tag[i] == '{' || tag[i] == '}' {
				t.Errorf("key %q holds %q", key1, tag[i])
			}
		}
		if len(key1) > 500 {
			t.Errorf("key of %d bytes", len(key1))
		}
	})
}

// orMissing makes all values alike that count as missing.
func orMissing(value string) string {
	if strings.TrimSpace(value) == "" {
		return ""
	}
	return value
}

func TestClientAddress(t *testing.T) {
	proxies := func(ranges ...v1alpha1.AddressRange) *v1alpha1.ClientAddress {
		return &v1alpha1.ClientAddress{TrustedProxies: ranges}
	}
	hops := func(n int32) *v1alpha1.ClientAddress { return &v1alpha1.ClientAddress{TrustedHops: &n} }
	for _, c := range []struct {
		reason  string
		trust   *v1alpha1.ClientAddress
		lines   []string
		want    string
		ignored bool
	}{
		{"nobody is trusted", nil, []string{"203.0.113.9"}, "192.0.2.1", true},
		{"nothing is forwarded", nil, nil, "192.0.2.1", false},
		{"the right-most untrusted entry", proxies("192.0.2.0/24"), []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9", false},
		{"trusted entries are walked over", proxies("192.0.2.0/24", "10.0.0.0/8"), []string{"1.1.1.1, 203.0.113.9, 10.1.2.3"}, "203.0.113.9", false},
		{"lines are joined in order", proxies("192.0.2.1"), []string{"1.1.1.1", "203.0.113.9"}, "203.0.113.9", false},
		{"an unreadable entry stops the walk", proxies("192.0.2.1", "10.0.0.0/8"), []string{"1.1.1.1, unknown, 10.1.2.3"}, "10.1.2.3", false},
		{"a port is dropped", proxies("192.0.2.1"), []string{"203.0.113.9:51234"}, "203.0.113.9", false},
		{"an impossible port is unreadable", proxies("192.0.2.1"), []string{"203.0.113.9:99999"}, "192.0.2.1", false},
		{"brackets and port are dropped", proxies("192.0.2.1"), []string{"[2001:db8::1]:443"}, "2001:db8::", false},
		{"IPv6 is counted by /64", proxies("192.0.2.1"), []string{"2001:DB8:0:0:1:2:3:4"}, "2001:db8::", false},
		{"a mapped address is IPv4", proxies("192.0.2.1"), []string{"::ffff:192.0.2.2"}, "192.0.2.2", false},
		{"NAT64 callers stay apart", proxies("192.0.2.1"), []string{"64:ff9b::808:808"}, "8.8.8.8", false},
		{"commas alone are unreadable", proxies("192.0.2.1"), []string{",,"}, "192.0.2.1", false},
		{"one hop", hops(1), []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9", false},
		{"two hops", hops(2), []string{"1.1.1.1, 203.0.113.9"}, "1.1.1.1", false},
		{"more hops than entries", hops(5), []string{"203.0.113.9"}, "203.0.113.9", false},
		{"no hop", hops(0), []string{"203.0.113.9"}, "192.0.2.1", true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r, err := NewClientResolver(c.trust)
			if err != nil {
				t.Fatal(err)
			}
			client, ignored := r.Resolve(&Request{Peer: peer, Header: map[string][]string{"X-Forwarded-For": c.lines}})
			if got := r.Bucket(client).String(); got != c.want || ignored != c.ignored {
				t.Errorf("counted by %s, ignored %v; want %s, %v", got, ignored, c.want, c.ignored)
			}
		})
	}
}

// manyRules is a set of n rules that differ by host or by path.
func manyRules(tb testing.TB, n int, rule func(i int) string) *Set {
	var policies []*Policy
	for i := 0; i < n; i += 32 {
		spec := "  selector: {}\n  rules:\n"
		for j := i; j < min(n, i+32); j++ {
			spec += fmt.Sprintf("  - {name: r%d, limit: 1, window: 1s, match: %s}\n", j, rule(j))
		}
		policies = append(policies, compileYAML(tb, fmt.Sprintf("p%d", i), spec))
	}
	return NewSet(policies)
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		for kind, rule := range map[string]func(int) string{
			"host": func(i int) string { return fmt.Sprintf(`{hosts: [h%d.example.com]}`, i) },
			"path": func(i int) string { return fmt.Sprintf(`{paths: [{type: Prefix, value: /api/v%d}]}`, i) },
		} {
			s := manyRules(b, n, rule)
			b.Run(fmt.Sprintf("%d by %s", n, kind), func(b *testing.B) {
				req := &Request{Method: "GET", Host: "other.example.com:80", Path: "/api//other/%41", Peer: peer}
				var m Matcher
				b.ReportAllocs()
				for b.Loop() {
					s.Match(req, &m)
				}
			})
		}
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	s := manyRules(t, 1000, func(i int) string { return fmt.Sprintf(`{paths: [{type: Prefix, value: /api/v%d}]}`, i) })
	req := &Request{Method: "GET", Host: "other.example.com:80", Path: "/api//other/%41", Peer: peer}
	var m Matcher
	if allocs := testing.AllocsPerRun(100, func() { s.Match(req, &m) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
