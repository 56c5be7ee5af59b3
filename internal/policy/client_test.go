package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func trusting(t testing.TB, ranges ...v1alpha1.AddressRange) *ClientResolver {
	t.Helper()
	r, err := NewClientResolver(&v1alpha1.ClientAddress{TrustedProxies: ranges})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bucketOf is how a caller behind these X-Forwarded-For lines is counted.
func bucketOf(r *ClientResolver, from string, lines ...string) string {
	client, _ := r.Resolve(&Request{Peer: netip.MustParseAddr(from), Header: map[string][]string{"X-Forwarded-For": lines}})
	return r.Bucket(client).String()
}

func TestForgedAddressesMakeNoBuckets(t *testing.T) {
	nobody, err := NewClientResolver(nil)
	if err != nil {
		t.Fatal(err)
	}
	proxies := trusting(t, "10.0.0.0/8")
	for i := range 50 {
		forged := fmt.Sprintf("198.51.100.%d", i)
		if got := bucketOf(nobody, "203.0.113.9", forged); got != "203.0.113.9" {
			t.Errorf("nobody is trusted, but the caller is %s", got)
		}
		if got := bucketOf(proxies, "10.0.0.1", forged+", 203.0.113.9"); got != "203.0.113.9" {
			t.Errorf("an entry left of the caller made it %s", got)
		}
		if got := bucketOf(proxies, "203.0.113.9", forged); got != "203.0.113.9" {
			t.Errorf("an untrusted peer chose %s", got)
		}
	}
}

func TestOneAddressIsOneBucket(t *testing.T) {
	r := trusting(t, "10.0.0.0/8")
	for _, c := range []struct {
		reason, want string
		entries      []string
	}{
		{"ports", "203.0.113.9", []string{"203.0.113.9", "203.0.113.9:1", "203.0.113.9:65535", " 203.0.113.9:51234\t", `"203.0.113.9:80"`}},
		{"spellings of IPv6", "2001:db8::", []string{"2001:db8::1", "2001:0DB8:0:0:0:0:0:1", "[2001:db8::1]", "[2001:db8::1]:443", "2001:db8::1%eth0"}},
		{"addresses in one /64", "2001:db8::", []string{"2001:db8::2", "2001:db8:0:0:ffff:ffff:ffff:ffff"}},
		{"zones", "fe80::", []string{"fe80::1%eth0", "fe80::1%eth1", "[fe80::1%25eth0]:80"}},
		{"a mapped address", "192.0.2.1", []string{"::ffff:192.0.2.1", "192.0.2.1", "[::ffff:c000:201]:80"}},
		{"another mapped address", "192.0.2.2", []string{"::ffff:192.0.2.2"}},
		{"NAT64", "8.8.8.8", []string{"64:ff9b::808:808", "8.8.8.8"}},
		{"another NAT64", "9.9.9.9", []string{"64:ff9b::909:909"}},
		{"what is no address", "10.0.0.1", []string{
			"unknown", "_hidden", "", " ", ",,", "203.0.113.9:99999", "203.0.113.9:", "203.0.113.9:x", "203.0.113.9:+80", "1.2.3", "1.2.3.4.5", "01.2.3.4",
			"[2001:db8::1", "2001:db8::1]", "[2001:db8::1]x", "[2001:db8::1]:", "203.0.113.9%eth0", "fe80::1%", "0x7f.1", "203.0.113.9;1", strings.Repeat("1", 60<<10), "\x00", "１.2.3.4",
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			for _, entry := range c.entries {
				if got := bucketOf(r, "10.0.0.1", entry); got != c.want {
					t.Errorf("%.40q is counted as %s, want %s", entry, got, c.want)
				}
			}
		})
	}
}

func TestPrefixLengthIsAChoice(t *testing.T) {
	for _, c := range []struct {
		bits int32
		want string
	}{{128, "2001:db8:1:2:3:4:5:6"}, {64, "2001:db8:1:2::"}, {56, "2001:db8:1::"}, {32, "2001:db8::"}} {
		r, err := NewClientResolver(&v1alpha1.ClientAddress{TrustedProxies: []v1alpha1.AddressRange{"10.0.0.0/8"}, IPv6PrefixLength: &c.bits})
		if err != nil {
			t.Fatal(err)
		}
		if got := bucketOf(r, "10.0.0.1", "2001:db8:1:2:3:4:5:6"); got != c.want {
			t.Errorf("/%d counts as %s, want %s", c.bits, got, c.want)
		}
	}
}

func TestOtherHeadersHoldOneAddress(t *testing.T) {
	hops := int32(1)
	r, err := NewClientResolver(&v1alpha1.ClientAddress{TrustedHops: &hops, Header: "cf-connecting-ip"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		header map[string][]string
		want   string
	}{
		{"the address", map[string][]string{"Cf-Connecting-Ip": {"203.0.113.9"}}, "203.0.113.9"},
		{"another header is not read", map[string][]string{"X-Forwarded-For": {"203.0.113.9"}}, "192.0.2.1"},
		{"a list is unreadable", map[string][]string{"Cf-Connecting-Ip": {"198.51.100.1, 203.0.113.9"}}, "192.0.2.1"},
		{"two lines are unreadable", map[string][]string{"Cf-Connecting-Ip": {"198.51.100.1", "203.0.113.9"}}, "192.0.2.1"},
		{"nothing", nil, "192.0.2.1"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			client, ignored := r.Resolve(&Request{Peer: peer, Header: c.header})
			if client.String() != c.want || ignored {
				t.Errorf("caller %s, ignored %v; want %s", client, ignored, c.want)
			}
		})
	}
}

func TestEveryoneShowsWhenForwardedAddressesAreIgnored(t *testing.T) {
	byAddress := `
  selector: {}
  rules: [{name: r, limit: 1, window: 1s, key: [{type: ClientIP}]}]
`
	lines := func(addr string) *Request {
		return &Request{Path: "/", Peer: netip.MustParseAddr("10.0.0.1"), Header: map[string][]string{"X-Forwarded-For": {addr}}}
	}
	var m Matcher
	s := NewSet([]*Policy{compileYAML(t, "p", byAddress)})
	s.Match(lines("203.0.113.1"), &m)
	one := m.Matches[0].Key
	s.Match(lines("203.0.113.2"), &m)
	if m.Matches[0].Key != one || !m.ForwardedIgnored {
		t.Errorf("keys %s and %s, ignored %v", one, m.Matches[0].Key, m.ForwardedIgnored)
	}
	if s.TrustsPeer(netip.MustParseAddr("10.0.0.1")) {
		t.Error("the balancer is trusted")
	}
	s = NewSet([]*Policy{compileYAML(t, "p", byAddress+"  clientAddress: {trustedProxies: [10.0.0.0/8]}\n")})
	s.Match(lines("203.0.113.1"), &m)
	one = m.Matches[0].Key
	s.Match(lines("203.0.113.2"), &m)
	if m.Matches[0].Key == one || m.ForwardedIgnored {
		t.Errorf("keys %s and %s, ignored %v", one, m.Matches[0].Key, m.ForwardedIgnored)
	}
	if !s.TrustsPeer(netip.MustParseAddr("::ffff:10.0.0.1")) || s.TrustsPeer(netip.MustParseAddr("192.0.2.1")) {
		t.Error("exactly the balancer should be trusted")
	}
}

func TestFindingTheCallerAllocatesNothing(t *testing.T) {
	r := trusting(t, "10.0.0.0/8", "2001:db8::/32")
	for _, line := range []string{"1.1.1.1, 203.0.113.9:80, [2001:db8::1]:443, 10.1.1.1", "fe80::1%eth0", "unknown", "999.999", ",,"} {
		req := &Request{Peer: netip.MustParseAddr("10.0.0.1"), Header: map[string][]string{"X-Forwarded-For": {line}}}
		if allocs := testing.AllocsPerRun(100, func() { r.Resolve(req) }); allocs > 0 {
			t.Errorf("%q: %v allocations", line, allocs)
		}
	}
}
