package policy

import (
	"net/netip"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// counted says what became of a key.
type counted uint8

const (
	countedYes  counted = iota
	countedSkip         // a part is missing and the rule does not apply then
	countedDeny         // a part is missing and the request is refused then
)

// buildKey appends the key of a rule for the request to m.key.
func (m *Matcher) buildKey(req *Request, rule *Rule, descriptor int) (missing bool, result counted) {
	c := &rule.compiled
	m.key = append(m.key[:0], c.keyHead...)
	if len(c.parts) == 0 {
		m.key = append(m.key, rule.Policy.Name.Namespace...)
		m.key = append(m.key, '/')
		m.key = append(m.key, rule.Policy.Name.Name...)
	}
	for i := range c.parts {
		if i > 0 {
			m.key = append(m.key, ',')
		}
		part := &c.parts[i]
		if value, ok := m.partValue(req, rule.Policy, part, descriptor); ok {
			m.key = appendValue(m.key, value, part.hash, c.hashKey)
			continue
		}
		missing = true
		switch part.onMissing {
		case v1alpha1.OnMissingSkip:
			return true, countedSkip
		case v1alpha1.OnMissingDeny:
			return true, countedDeny
		case v1alpha1.OnMissingShared:
			m.key = append(m.key, sharedForm...)
		default:
			m.key = append(m.key, fallbackForm...)
			m.key = appendValue(m.key, m.bucketText(req, rule.Policy), false, nil)
		}
	}
	m.key = append(m.key, c.keyTail...)
	return missing, countedYes
}

// partValue reads one part. A part that is empty, blank or sent more than once
// is missing. The value holds until the next part is read.
func (m *Matcher) partValue(req *Request, p *Policy, part *keyPart, descriptor int) (string, bool) {
	switch part.kind {
	case v1alpha1.KeyHeader:
		if part.proxies && !p.compiled.client.Trusts(req.Peer) {
			return "", false
		}
		return single(req.Header[part.name])
	case v1alpha1.KeyCookie:
		return present(cookie(req.Header["Cookie"], part.name))
	case v1alpha1.KeyQueryParam:
		return present(m.queryParam(req.RawQuery, part.name))
	case v1alpha1.KeyPathSegment:
		return present(segment(m.path(req, p.compiled.form), part.index))
	case v1alpha1.KeyDescriptor:
		if descriptor < 0 {
			return "", false
		}
		return present(entry(req.Descriptors[descriptor].Entries, part.name))
	case v1alpha1.KeyPath:
		return m.path(req, p.compiled.form), true
	case v1alpha1.KeyHost:
		return m.host, true
	case v1alpha1.KeyMethod:
		return req.Method, true
	default: // ClientIP
		return m.bucketText(req, p), true
	}
}

// bucketText is the address by which the policy counts the caller; "" where the
// connection has none.
func (m *Matcher) bucketText(req *Request, p *Policy) string {
	bucket := p.compiled.client.Bucket(m.client(req, p))
	if !bucket.IsValid() {
		return ""
	}
	m.text = bucket.AppendTo(m.text[:0])
	return textOf(m.text)
}

// client finds the caller's address as the policy sees it, once a request for
// policies that see alike.
func (m *Matcher) client(req *Request, p *Policy) netip.Addr {
	resolver := p.compiled.client
	for i := range m.clients {
		if m.clients[i].resolver == resolver {
			return m.clients[i].addr
		}
	}
	addr, ignored := resolver.Resolve(req)
	m.ForwardedIgnored = m.ForwardedIgnored || ignored
	m.clients = append(m.clients, resolvedClient{resolver, addr})
	return addr
}

// single is the only value of a header, without space around it.
func single(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	return present(values[0], 1)
}

// present takes a value that was found so many times.
func present(value string, found int) (string, bool) {
	value = strings.Trim(value, " \t")
	return value, found == 1 && value != ""
}

// cookie finds a cookie (RFC 6265) and tells how many there are of that name.
func cookie(lines []string, name string) (value string, found int) {
	for _, line := range lines {
		for more := true; more; {
			var pair string
			pair, line, more = strings.Cut(line, ";")
			key, text, ok := strings.Cut(pair, "=")
			if !ok || strings.Trim(key, " \t") != name {
				continue
			}
			found++
			value = strings.Trim(text, " \t")
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
		}
	}
	return value, found
}

// queryParam finds a query parameter, decoded, and tells how many there are of
// that name. The value holds until m.text is written again.
func (m *Matcher) queryParam(query, name string) (value string, found int) {
	var raw string
	for more := query != ""; more; {
		var pair string
		pair, query, more = strings.Cut(query, "&")
		key, text, _ := strings.Cut(pair, "=")
		if m.text = appendQueryDecoded(m.text[:0], key); string(m.text) == name {
			found++
			raw = text
		}
	}
	m.text = appendQueryDecoded(m.text[:0], raw)
	return textOf(m.text), found
}

// appendQueryDecoded decodes a name or value of a query; what is no escape
// stands for itself.
func appendQueryDecoded(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if decoded, ok := unescape(s[i:]); ok {
				c = decoded
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// segment is one segment of a clean path, and whether (1) or not (0) it is there.
func segment(path string, index int) (string, int) {
	rest := strings.TrimPrefix(path, "/")
	for more := true; more; index-- {
		var s string
		s, rest, more = strings.Cut(rest, "/")
		if index == 0 {
			return s, 1
		}
	}
	return "", 0
}

// entry is the value of a descriptor's entry, and how many there are of that key.
func entry(entries []DescriptorEntry, key string) (value string, found int) {
	for i := range entries {
		if entries[i].Key == key {
			value = entries[i].Value
			found++
		}
	}
	return value, found
}
