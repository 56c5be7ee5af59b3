package policy

import (
	"net/netip"
	"strings"
)

// longestAddress is the length of the longest address with a zone that is read;
// the longest IPv6 address has 45 characters.
const longestAddress = 64

// parseForwarded reads one entry of a forwarding header: an address, with
// brackets, port and quotes or without. What has a port that is none is
// unreadable.
func parseForwarded(entry string) (netip.Addr, bool) {
	entry = unquote(strings.Trim(entry, " \t"))
	if rest, ok := strings.CutPrefix(entry, "["); ok {
		addr, port, ok := strings.Cut(rest, "]")
		if !ok || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		return parseAddress(addr)
	}
	if colon := strings.IndexByte(entry, ':'); colon >= 0 && strings.LastIndexByte(entry, ':') == colon {
		if !isPort(entry[colon:]) {
			return netip.Addr{}, false
		}
		entry = entry[:colon]
	}
	return parseAddress(entry)
}

// unquote drops one pair of double quotes.
func unquote(s string) string {
	if len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// parseAddress reads an address and drops its zone, which only means something
// to the machine that wrote it.
func parseAddress(s string) (netip.Addr, bool) {
	if len(s) > longestAddress {
		return netip.Addr{}, false
	}
	s, zone, zoned := strings.Cut(s, "%")
	if zoned && zone == "" || !mayBeAddress(s) {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || zoned && addr.Is4() {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// mayBeAddress keeps nonsense from netip, whose errors allocate.
func mayBeAddress(s string) bool {
	separators := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == ':' || c == '.':
			separators++
		case '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f':
		default:
			return false
		}
	}
	return separators > 1
}

// isPort tells that s is a colon and a port.
func isPort(s string) bool {
	if len(s) < 2 || len(s) > 6 || s[0] != ':' {
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
