package policy

import (
	"net/netip"
	"strings"
)

// CleanHost returns a host in the form that is compared: lower case, without
// port, without a dot at the end, and an IPv6 address in brackets as RFC 5952
// writes it.
func CleanHost(host string) string {
	clean, _ := cleanHost(nil, host)
	return strings.Clone(clean)
}

// cleanHost is CleanHost that writes into buf where something has to change. The
// result holds until buf is written to.
func cleanHost(buf []byte, host string) (string, []byte) {
	if addr, ok := ipv6Host(host); ok {
		buf = append(buf[:0], '[')
		buf = addr.AppendTo(buf)
		buf = append(buf, ']')
		return textOf(buf), buf
	}
	host = strings.TrimRight(withoutPort(host), ".")
	for i := range len(host) {
		if c := host[i]; c != lowerASCII(c) {
			buf = buf[:0]
			for j := range len(host) {
				buf = append(buf, lowerASCII(host[j]))
			}
			return textOf(buf), buf
		}
	}
	return host, buf
}

// ipv6Host reads a host that is an IPv6 address, which should stand in brackets
// but also counts without them.
func ipv6Host(host string) (netip.Addr, bool) {
	if rest, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(rest, "]")
	}
	if strings.IndexByte(host, ':') < 0 {
		return netip.Addr{}, false
	}
	return parseAddress(host)
}

// withoutPort drops :port. The colons between brackets are no port.
func withoutPort(host string) string {
	if strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > 0 {
			return host[:end+1]
		}
		return host
	}
	name, _, _ := strings.Cut(host, ":")
	return name
}
