package policy

import (
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// outcome says what became of a key.
type outcome uint8

const (
	counted  outcome = iota
	leaveOut         // a part is missing and the rule does not apply then
	refuse           // a part is missing and the request is refused then
)

// buildKey writes the key of a rule for the request into m.key. Where several
// parts are missing, one that refuses outweighs one that leaves the rule out.
func (m *Matcher) buildKey(rule *Rule) (missing bool, result outcome) {
	c := &rule.compiled
	m.key = append(m.key[:0], c.keyHead...)
	for i := range c.parts {
		if i > 0 {
			m.key = append(m.key, ',')
		}
		part := &c.parts[i]
		value, ok := m.partValue(rule.Policy, part)
		if ok {
			m.key = appendValue(m.key, value, part.hash, c.hashKey)
			continue
		}
		missing = true
		switch part.onMissing {
		case v1alpha1.OnMissingDeny:
			return true, refuse
		case v1alpha1.OnMissingSkip:
			result = leaveOut
		case v1alpha1.OnMissingShared:
			m.key = append(m.key, sharedForm...)
		default:
			m.key = append(m.key, fallbackForm...)
			m.key = appendValue(m.key, m.bucketText(rule.Policy), false, nil)
		}
	}
	m.key = append(m.key, c.keyTail...)
	return missing, result
}

// partValue reads one part, and tells whether it is there. The value holds until
// the next part is read.
func (m *Matcher) partValue(p *Policy, part *keyPart) (string, bool) {
	v := &m.view
	switch part.kind {
	case v1alpha1.KeyHeader:
		if part.proxies && !p.compiled.client.Trusts(v.req.Peer) {
			return "", false
		}
		return single(v.header(part.name))
	case v1alpha1.KeyCookie:
		return present(cookie(v.req.Header["Cookie"], part.name))
	case v1alpha1.KeyQueryParam:
		return present(m.queryParam(v.req.RawQuery, part.name))
	case v1alpha1.KeyPathSegment:
		return present(segment(v.path(p.compiled.form), part.index))
	case v1alpha1.KeyDescriptor:
		return present(descriptorValue(v.entries, part.name))
	case v1alpha1.KeyPath:
		return v.path(p.compiled.form), true
	case v1alpha1.KeyHost:
		return v.host, true
	case v1alpha1.KeyMethod:
		return v.req.Method, true
	default: // ClientIP
		return m.bucketText(p), true
	}
}

// single is the only value of a header.
func single(lines []string) (string, bool) {
	if len(lines) != 1 {
		return "", false
	}
	return present(trimSpace(lines[0]), 1)
}

// present takes a value that was found so many times. One that is empty, blank
// or there more than once is as good as none: an application might read it in
// several ways.
func present(value string, found int) (string, bool) {
	return value, found == 1 && strings.TrimSpace(value) != ""
}

// cookie finds a cookie (RFC 6265) and tells how many there are of that name.
// Quotes around a value are not part of it, as most applications see it.
func cookie(lines []string, name string) (value string, found int) {
	for _, line := range lines {
		for more := true; more; {
			var pair string
			pair, line, more = strings.Cut(line, ";")
			key, text, ok := strings.Cut(pair, "=")
			if ok && trimSpace(key) == name {
				value = unquote(trimSpace(text))
				found++
			}
		}
	}
	return value, found
}

// queryParam finds a query parameter, decoded, and tells how many there are of
// that name, in whatever spelling. The value holds until m.text is written again.
func (m *Matcher) queryParam(query, name string) (value string, found int) {
	var raw string
	for more := query != ""; more; {
		var pair string
		pair, query, more = strings.Cut(query, "&")
		key, text, _ := strings.Cut(pair, "=")
		if m.text = appendQueryDecoded(m.text[:0], key); string(m.text) == name {
			raw = text
			found++
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
