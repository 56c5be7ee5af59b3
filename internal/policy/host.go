package policy

import "strings"

// CleanHost returns a host in the form that is compared: lower case, without
// port, without a dot at the end. It allocates only if there are capitals.
func CleanHost(host string) string {
	host = withoutPort(host)
	host = strings.TrimSuffix(host, ".")
	for i := range len(host) {
		if c := host[i]; 'A' <= c && c <= 'Z' {
			return strings.ToLower(host)
		}
	}
	return host
}

// withoutPort drops :port. The colons of a bracketed IPv6 address are its own.
func withoutPort(host string) string {
	if strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > 0 {
			return host[:end+1]
		}
		return host
	}
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && strings.IndexByte(host, ':') == colon {
		return host[:colon]
	}
	return host
}
