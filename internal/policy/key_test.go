package policy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// keyed is a set of one rule with this key.
func keyed(t testing.TB, parts string) *Set {
	t.Helper()
	return NewSet([]*Policy{compileYAML(t, "p", "  selector: {}\n  rules: [{name: r, limit: 1, window: 1m, key: ["+parts+"]}]\n")})
}

// tagOf is the client part of the one key under which a request is counted.
func tagOf(t testing.TB, s *Set, req *Request) string {
	t.Helper()
	keys := keysOf(t, s, req)
	if len(keys) != 1 {
		t.Fatalf("%d keys, want 1", len(keys))
	}
	tag, rest, _ := strings.Cut(strings.TrimPrefix(keys[0], "rl:{"), "}")
	if rest != ":shop/p/r:60:" {
		t.Fatalf("key %q ends with %q", keys[0], rest)
	}
	return tag
}

func digest(sum []byte) string {
	return "#" + strings.ToLower(base32.StdEncoding.EncodeToString(sum))[:26]
}

func plainDigest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return digest(sum[:])
}

func TestPartsAreWrittenAsDocumented(t *testing.T) {
	req := &Request{
		Method: "POST", Host: "Shop.example.com:443", Path: "/v1/../users/J%C3%B6rg%2Fx/", RawQuery: "a=1&q=x%20y&e=&two=1&t%77o=2&key=secret&x;y=1",
		Header: map[string][]string{
			"X-User": {" user_123 "}, "X-Long": {strings.Repeat("x", 65)}, "X-64": {strings.Repeat("x", 64)}, "X-Empty": {""}, "X-Blank": {" \t\u00a0"}, "X-Two": {"a", "a"},
			"Authorization": {"Bearer abc"}, "X-Api-Key": {"abc"}, "Session-Token": {"abc"}, "X-Six": {"ip=2001"},
			"Cookie": {"a=1; sid=\"abc\"; e=", "two=1; two=1"},
		},
		Peer: netip.MustParseAddr("2001:db8::1"),
	}
	const address = "2001%3Adb8%3A%3A"
	for _, c := range []struct{ reason, part, want string }{
		{"an address", "{type: ClientIP}", address},
		{"a header without the space around it", "{type: Header, name: x-user}", "user_123"},
		{"a header of 64 bytes", "{type: Header, name: X-64}", strings.Repeat("x", 64)},
		{"a header of 65 bytes", "{type: Header, name: X-Long}", plainDigest(strings.Repeat("x", 65))},
		{"an absent header", "{type: Header, name: X-None}", "ip=" + address},
		{"an absent header, all together", "{type: Header, name: X-None, onMissing: Shared}", "none="},
		{"an empty header", "{type: Header, name: X-Empty}", "ip=" + address},
		{"a blank header", "{type: Header, name: X-Blank}", "ip=" + address},
		{"a header that is sent twice", "{type: Header, name: X-Two}", "ip=" + address},
		{"a header that looks like a fallback", "{type: Header, name: X-Six}", "ip%3D2001"},
		{"a header that is a secret", "{type: Header, name: Authorization}", plainDigest("Bearer abc")},
		{"a header that ends with Api-Key", "{type: Header, name: X-API-KEY}", plainDigest("abc")},
		{"a header that ends with Token", "{type: Header, name: session-token}", plainDigest("abc")},
		{"a header that the policy hashes", "{type: Header, name: X-User, hash: true}", plainDigest("user_123")},
		{"a header from nobody's proxy", "{type: Header, name: X-User, trustedFrom: Proxies}", "ip=" + address},
		{"a cookie without its quotes", "{type: Cookie, name: sid}", plainDigest("abc")},
		{"an empty cookie", "{type: Cookie, name: e}", "ip=" + address},
		{"a cookie that is sent twice", "{type: Cookie, name: two}", "ip=" + address},
		{"a query parameter, decoded", "{type: QueryParam, name: q}", "x%20y"},
		{"an empty query parameter", "{type: QueryParam, name: e}", "ip=" + address},
		{"a query parameter that is sent twice in two spellings", "{type: QueryParam, name: two}", "ip=" + address},
		{"a query parameter that is a secret", "{type: QueryParam, name: key}", plainDigest("secret")},
		{"a segment", "{type: PathSegment, index: 0}", "users"},
		{"a segment with an escaped slash", "{type: PathSegment, index: 1}", "J%C3%B6rg%252Fx"},
		{"a segment that is not there", "{type: PathSegment, index: 2}", "ip=" + address},
		{"a path", "{type: Path}", "%2Fusers%2FJ%C3%B6rg%252Fx"},
		{"a host", "{type: Host}", "shop.example.com"},
		{"a method", "{type: Method}", "POST"},
		{"a descriptor's entry without descriptors", "{type: Descriptor, name: user}", "ip=" + address},
		{"two parts", "{type: Method}, {type: Header, name: X-User}", "POST,user_123"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := tagOf(t, keyed(t, c.part), req); got != c.want {
				t.Errorf("client part %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatHasNoTextStillHasAKey(t *testing.T) {
	for part, want := range map[string]string{"{type: ClientIP}": `""`, "{type: Host}": `""`, "{type: Method}": `""`, "{type: Path}": "%2F", "{type: Header, name: X}": `ip=""`} {
		if got := tagOf(t, keyed(t, part), &Request{}); got != want {
			t.Errorf("%s of nothing is %q, want %q", part, got, want)
		}
	}
}

func TestMissingPartsCanRefuseOrLeaveOut(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  selector: {}
  rules:
  - {name: skip, limit: 1, window: 1s, key: [{type: Header, name: A, onMissing: Skip}]}
  - {name: deny, limit: 1, window: 1s, key: [{type: Header, name: A, onMissing: Deny}]}
  - {name: ip, limit: 1, window: 1s, key: [{type: Header, name: A}]}
  - {name: both, limit: 1, window: 1s, key: [{type: Header, name: A, onMissing: Skip}, {type: Header, name: B, onMissing: Deny}]}
`)})
	var m Matcher
	s.Match(&Request{Path: "/", Peer: peer}, &m)
	got := ""
	for _, match := range m.Matches {
		got += fmt.Sprintf("%s missing=%v deny=%v key=%v; ", match.Rule.Name, match.Missing, match.Deny, match.Key != "")
	}
	if want := "deny missing=true deny=true key=false; ip missing=true deny=false key=true; both missing=true deny=true key=false; "; got != want {
		t.Errorf("matches %s, want %s", got, want)
	}
	if len(m.Skipped) != 1 || m.Skipped[0].Name != "skip" {
		t.Errorf("skipped %v", m.Skipped)
	}
	s.Match(&Request{Path: "/", Peer: peer, Header: map[string][]string{"A": {"a"}, "B": {"b"}}}, &m)
	if len(m.Matches) != 4 || len(m.Skipped) != 0 || m.Matches[0].Missing || m.Matches[1].Deny {
		t.Errorf("matches %+v, skipped %v", m.Matches, m.Skipped)
	}
}

func TestHeadersOfProxiesAreBelievedFromProxiesOnly(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  selector: {}
  clientAddress: {trustedProxies: [192.0.2.0/24]}
  rules: [{name: r, limit: 1, window: 1m, key: [{type: Header, name: X-User, trustedFrom: Proxies}]}]
`)})
	header := map[string][]string{"X-User": {"u"}}
	if got := tagOf(t, s, &Request{Peer: peer, Header: header}); got != "u" {
		t.Errorf("from a proxy: %q", got)
	}
	if got := tagOf(t, s, &Request{Peer: netip.MustParseAddr("203.0.113.9"), Header: header}); got != "ip=203.0.113.9" {
		t.Errorf("from anyone: %q", got)
	}
}

func TestDigestsAreKeyedWhereThereIsAKey(t *testing.T) {
	p, err := DecodePolicy([]byte(`{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"selector": {}, "rules": [
		{"name": "r", "limit": 1, "window": "1m", "key": [{"type": "Header", "name": "Authorization"}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := Compile(p, Defaults{KeyPrefix: "team", HashKey: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte("k"))
	mac.Write([]byte("secret"))
	keys := keysOf(t, NewSet([]*Policy{compiled}), &Request{Header: map[string][]string{"Authorization": {"secret"}}})
	if want := "team:{" + digest(mac.Sum(nil)) + "}:shop/p/r:60:"; len(keys) != 1 || keys[0] != want {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

// part is one key part as a request carries it, and what identifies its caller.
type part struct {
	missing bool
	value   string
}

func drawPart(t *rapid.T, name string) part {
	hostile := rapid.SampledFrom([]string{"a", "b", "a,b", ",", "ip=", "ip=192.0.2.1", "none=", `""`, "#", "%", "%2C", "{", "}", "a}:shop/p/s:60", "é", "\x00", "\xff", "\r\n", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("y", 60<<10), plainDigest(strings.Repeat("x", 65))})
	value := rapid.OneOf(hostile, rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 80), func(b []byte) string { return string(b) })).Draw(t, name)
	if strings.TrimSpace(value) == "" {
		return part{missing: true}
	}
	return part{value: value, missing: rapid.IntRange(0, 4).Draw(t, name+" missing") == 0}
}

func TestNoTwoCallersShareAKey(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  selector: {}
  rules:
  - {name: r, limit: 1, window: 1m, key: [{type: Header, name: A}, {type: QueryParam, name: q, onMissing: Shared}, {type: QueryParam, name: h, hash: true}, {type: ClientIP}]}
  - {name: s, limit: 1, window: 1m, key: [{type: Header, name: A}]}
  - {name: all, limit: 1, window: 1m}
`), compileYAML(t, "q", `
  selector: {}
  rules: [{name: r, limit: 1, window: 1m, key: [{type: Header, name: A}]}]
`)})
	owners := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		a, q, h := drawPart(t, "A"), drawPart(t, "q"), drawPart(t, "h")
		a.value = strings.Trim(a.value, " \t")
		from := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "2001:db8::1"}).Draw(t, "peer")
		req := &Request{Path: "/", Peer: netip.MustParseAddr(from), Header: map[string][]string{}}
		if !a.missing {
			req.Header["A"] = []string{a.value}
		}
		query := url.Values{}
		if !q.missing {
			query.Set("q", q.value)
		}
		if !h.missing {
			query.Set("h", h.value)
		}
		req.RawQuery = query.Encode()
		var m Matcher
		s.Match(req, &m)
		for _, match := range m.Matches {
			checkKeyForm(t, match.Key)
			owner := match.Rule.Policy.Name.Name + "/" + match.Rule.Name
			if match.Rule.Name != "all" {
				owner += fmt.Sprintf(" %v", identity(a, from))
			}
			if match.Rule.Policy.Name.Name == "p" && match.Rule.Name == "r" {
				owner += fmt.Sprintf(" %v %v %s", identity(q, ""), identity(h, from), from)
			}
			if known, ok := owners[match.Key]; ok && known != owner {
				t.Fatalf("%q is the key of %q and of %q", match.Key, known, owner)
			}
			owners[match.Key] = owner
		}
	})
}

// identity is who a part stands for: its value, or whoever takes its place.
func identity(p part, instead string) string {
	if p.missing {
		return "missing " + instead
	}
	return fmt.Sprintf("%q", p.value)
}

// checkKeyForm checks that a key is short, printable and has one tag.
func checkKeyForm(t interface{ Fatalf(string, ...any) }, key string) {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			t.Fatalf("key %q holds %q", key, key[i])
		}
	}
	if strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || strings.Contains(key, "{}") || len(key) > 900 {
		t.Fatalf("key %q", key)
	}
}

func TestNamesCannotForgeKeys(t *testing.T) {
	for _, name := range []string{"a}b", "a/b", "a:b", "a b", "é"} {
		limit := int64(1)
		p := &v1alpha1.RateLimitPolicy{Spec: v1alpha1.RateLimitPolicySpec{Domain: "d", Rules: []v1alpha1.Rule{{Name: "r", Limit: &limit, Window: "1m"}}}}
		p.Namespace, p.Name = "shop", name
		if _, err := Compile(p, Defaults{}); err == nil {
			t.Errorf("a policy named %q was compiled", name)
		}
		p.Name = "p"
		if _, err := Compile(p, Defaults{KeyPrefix: name}); err == nil {
			t.Errorf("the prefix %q was taken", name)
		}
	}
}

func TestAKeyIsOneAllocation(t *testing.T) {
	for _, c := range []struct {
		reason, parts string
		want          float64
	}{
		{"no key", "", 0},
		{"readable parts", "{type: Header, name: X-User-Id}, {type: QueryParam, name: q}, {type: ClientIP}, {type: Path}", 1},
		{"a digest", "{type: Header, name: X-Long}", 1},
		{"a fallback", "{type: Cookie, name: none}", 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := keyed(t, c.parts)
			req := &Request{Path: "/a//b", RawQuery: "x=1&q=a%20b", Peer: peer, Header: map[string][]string{"X-User-Id": {"user_123"}, "X-Long": {strings.Repeat("x", 200)}, "Cookie": {"a=b; c=d"}}}
			var m Matcher
			if allocs := testing.AllocsPerRun(100, func() { s.Match(req, &m) }); allocs != c.want {
				t.Errorf("%v allocations, want %v", allocs, c.want)
			}
		})
	}
}

func TestCounterNamesAWindow(t *testing.T) {
	m := Match{Key: "rl:{user_123}:shop/storefront/per-user:60:"}
	if got, want := m.Counter(29139840), "rl:{user_123}:shop/storefront/per-user:60:29139840"; got != want {
		t.Errorf("counter %q, want %q", got, want)
	}
}
