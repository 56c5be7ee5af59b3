package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	forwardedFor            = "X-Forwarded-For"
	defaultIPv6PrefixLength = 64
)

// nat64 is the well-known prefix of RFC 6052: the last 32 bits are the caller's
// IPv4 address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// ClientResolver finds the caller's address behind proxies. It never changes.
type ClientResolver struct {
	header  string // canonical name
	list    bool   // the header is a list, walked from the right
	trusted []netip.Prefix
	hops    int // how many entries to trust; -1 where trusted decides
	v6bits  int
}

// NewClientResolver compiles c; nil trusts nobody.
func NewClientResolver(c *v1alpha1.ClientAddress) (*ClientResolver, error) {
	r := &ClientResolver{header: forwardedFor, list: true, v6bits: defaultIPv6PrefixLength}
	if c == nil {
		return r, nil
	}
	if c.Header != "" {
		r.header = canonicalHeader(c.Header)
		r.list = r.header == forwardedFor
	}
	if c.IPv6PrefixLength != nil {
		r.v6bits = int(*c.IPv6PrefixLength)
	}
	if c.TrustedHops != nil {
		r.hops = int(*c.TrustedHops)
		return r, nil
	}
	r.hops = -1
	for _, text := range c.TrustedProxies {
		prefix, err := ParseRange(string(text))
		if err != nil {
			return nil, fmt.Errorf("trusted proxy %q: %w", text, err)
		}
		r.trusted = append(r.trusted, prefix)
	}
	return r, nil
}

// ParseRange reads a CIDR, whose host bits are dropped, or a bare address, which
// stands for itself alone.
func ParseRange(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Addr().Is4In6() {
			return netip.Prefix{}, errors.New("write a CIDR such as 10.0.0.0/8")
		}
		return prefix.Masked(), nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is4In6() || addr.Zone() != "" {
		return netip.Prefix{}, errors.New("write an address such as 192.0.2.7 or a CIDR such as 10.0.0.0/8")
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

// Trusts tells that forwarded addresses from this peer are believed.
func (r *ClientResolver) Trusts(peer netip.Addr) bool {
	if r.hops >= 0 {
		return r.hops > 0
	}
	return inAny(r.trusted, plain(peer))
}

// Resolve finds the caller's address, whole, and tells whether a forwarded
// address arrived and was ignored because the peer is not trusted. Callers are
// told apart by Bucket of it.
func (r *ClientResolver) Resolve(req *Request) (client netip.Addr, ignored bool) {
	peer := plain(req.Peer)
	lines := req.Header[r.header]
	if !r.Trusts(peer) {
		return peer, len(lines) > 0 || len(req.Header[forwardedFor]) > 0
	}
	if r.list {
		return r.walk(peer, lines), false
	}
	if len(lines) == 1 {
		if addr, ok := parseForwarded(lines[0]); ok {
			return addr, false
		}
	}
	return peer, false
}

// walk goes through the entries of all lines from the right, as long as they are
// trusted, and returns the last good one. An entry that is no address ends it:
// what stands to the left of one is nobody's word.
func (r *ClientResolver) walk(client netip.Addr, lines []string) netip.Addr {
	seen := 1 // the peer
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; seen++ {
			var entry string
			line, entry, more = cutLast(line)
			addr, ok := parseForwarded(entry)
			if !ok {
				return client
			}
			client = addr
			if !r.goesOn(addr, seen) {
				return client
			}
		}
	}
	return client
}

// goesOn tells that the entry is one of our proxies, so the next one counts.
func (r *ClientResolver) goesOn(entry netip.Addr, seen int) bool {
	if r.hops >= 0 {
		return seen < r.hops
	}
	return inAny(r.trusted, entry)
}

// cutLast takes the last entry off a list.
func cutLast(line string) (rest, entry string, more bool) {
	comma := strings.LastIndexByte(line, ',')
	if comma < 0 {
		return "", line, false
	}
	return line[:comma], line[comma+1:], true
}

// Bucket is the address by which a caller is counted: IPv6 by prefix, and an
// IPv4 caller that came through NAT64 (64:ff9b::/96) as IPv4, since else they
// would all be one.
func (r *ClientResolver) Bucket(client netip.Addr) netip.Addr {
	if !client.Is6() {
		return client
	}
	if nat64.Contains(client) {
		bytes := client.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	prefix, err := client.Prefix(r.v6bits)
	if err != nil {
		return client
	}
	return prefix.Addr()
}
