package policy

import (
	"fmt"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	forwardedFor            = "X-Forwarded-For"
	defaultIPv6PrefixLength = 64
)

// nat64 is the well-known prefix of RFC 6052: the last 32 bits are the caller's
// IPv4 address, so each of them is a caller of its own.
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
	r := &ClientResolver{header: forwardedFor, v6bits: defaultIPv6PrefixLength}
	if c == nil {
		r.list = true
		return r, nil
	}
	if c.Header != "" {
		r.header = textproto.CanonicalMIMEHeaderKey(c.Header)
	}
	r.list = r.header == forwardedFor
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
			return netip.Prefix{}, fmt.Errorf("write a CIDR such as 10.0.0.0/8")
		}
		return prefix.Masked(), nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is4In6() || addr.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("write an address such as 192.0.2.7 or a CIDR such as 10.0.0.0/8")
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
	if !r.list {
		if len(lines) == 1 {
			if addr, ok := parseForwarded(lines[0]); ok {
				return addr, false
			}
		}
		return peer, false
	}
	return r.walk(peer, lines), false
}

// walk goes through the entries of all lines from the right, as long as they are
// trusted, and returns the last good one.
func (r *ClientResolver) walk(client netip.Addr, lines []string) netip.Addr {
	seen := 1 // the peer
	for i := len(lines) - 1; i >= 0; i-- {
		line, more := lines[i], true
		for more {
			var entry string
			if comma := strings.LastIndexByte(line, ','); comma >= 0 {
				line, entry = line[:comma], line[comma+1:]
			} else {
				entry, more = line, false
			}
			addr, ok := parseForwarded(entry)
			if !ok {
				return client
			}
			client = addr
			if r.hops >= 0 && seen >= r.hops || r.hops < 0 && !inAny(r.trusted, addr) {
				return client
			}
			seen++
		}
	}
	return client
}

// Bucket is the address by which a caller is counted: IPv6 by prefix.
func (r *ClientResolver) Bucket(client netip.Addr) netip.Addr {
	if !client.Is6() || nat64.Contains(client) {
		return client
	}
	prefix, err := client.Prefix(r.v6bits)
	if err != nil {
		return client
	}
	return prefix.Addr()
}

// parseForwarded reads one entry: an address, with a port and brackets or
// without. What has a port that is none is unreadable.
func parseForwarded(entry string) (netip.Addr, bool) {
	entry = strings.Trim(entry, " \t")
	if len(entry) > 1 && entry[0] == '"' && entry[len(entry)-1] == '"' {
		entry = entry[1 : len(entry)-1]
	}
	if entry == "" || len(entry) > 128 {
		return netip.Addr{}, false
	}
	if entry[0] == '[' {
		end := strings.IndexByte(entry, ']')
		if end < 0 || entry[end+1:] != "" && !isPort(entry[end+1:]) {
			return netip.Addr{}, false
		}
		entry = entry[1:end]
	} else if colon := strings.IndexByte(entry, ':'); colon >= 0 && strings.LastIndexByte(entry, ':') == colon {
		if !isPort(entry[colon:]) {
			return netip.Addr{}, false
		}
		entry = entry[:colon]
	}
	if !mayBeAddress(entry) {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(entry)
	if err != nil {
		return netip.Addr{}, false
	}
	return plain(addr), true
}

// mayBeAddress keeps obvious nonsense from netip, whose errors allocate.
func mayBeAddress(s string) bool {
	return s != "" && (s[0] == ':' || '0' <= s[0] && s[0] <= '9' || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'f')
}

// isPort tells that s is a colon and a port.
func isPort(s string) bool {
	if len(s) < 2 || len(s) > 6 {
		return false
	}
	port := 0
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		port = port*10 + int(s[i]-'0')
	}
	return port <= 65535
}

// plain drops the zone, and the IPv6 dress of an IPv4 address.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func inAny(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}
