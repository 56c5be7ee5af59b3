package policy

import (
	"net/netip"
	"strings"
)

// The keys of entries that name attributes of the HTTP request behind a
// descriptor. A descriptor of nothing else is judged by the HTTP rules.
const (
	attributeMethod  = "method"
	attributePath    = "path"
	attributeHost    = "host"
	attributeAddress = "remote_address"
	attributeHeader  = "header." // and the header's name
)

// maxEntries is how many entries a rule's descriptor can have.
const maxEntries = 16

// matchDescriptors judges each descriptor: by the HTTP rules if it is made of
// attributes, else by the rules for descriptors. Those of one address alone are
// open to both.
func (s *Set) matchDescriptors(req *Request, m *Matcher) {
	repeated := false
	caller := callerOf(req)
	for i := range req.Descriptors {
		m.view.descriptor, m.view.entries = i, req.Descriptors[i].Entries
		m.view.http, m.view.repeated = areAttributes(m.view.entries), repeated
		m.derive(m.view.entries, caller)
		m.view.open(&m.derived)
		m.clients = m.clients[:0]
		m.found = m.found[:0]
		if m.view.http {
			s.find(m)
			repeated = true
		}
		s.findByDescriptor(m)
		s.settle(m)
	}
	m.derived = Request{}
}

// callerOf is the caller's address of the whole call: the first that a
// descriptor names, since all descriptors of a call are about one request.
func callerOf(req *Request) netip.Addr {
	for i := range req.Descriptors {
		for _, e := range req.Descriptors[i].Entries {
			if e.Key == attributeAddress {
				if addr, ok := parseForwarded(e.Value); ok {
					return addr
				}
			}
		}
	}
	return req.Peer
}

func areAttributes(entries []DescriptorEntry) bool {
	for _, e := range entries {
		switch e.Key {
		case attributeMethod, attributePath, attributeHost, attributeAddress:
		default:
			if !strings.HasPrefix(e.Key, attributeHeader) {
				return false
			}
		}
	}
	return len(entries) > 0
}

// opensToDescriptorRules tells that match.descriptor can hold for the entries.
func opensToDescriptorRules(entries []DescriptorEntry) bool {
	return len(entries) == 1 && entries[0].Key == attributeAddress || !areAttributes(entries)
}

// derive makes the request that a descriptor's attributes describe.
func (m *Matcher) derive(entries []DescriptorEntry, caller netip.Addr) {
	m.derived = Request{Peer: caller}
	for _, e := range entries {
		switch e.Key {
		case attributeMethod:
			m.derived.Method = e.Value
		case attributePath:
			m.derived.Path, m.derived.RawQuery, _ = strings.Cut(e.Value, "?")
		case attributeHost:
			m.derived.Host = e.Value
		case attributeAddress:
			if addr, ok := parseForwarded(e.Value); ok {
				m.derived.Peer = addr
			}
		default:
			if name, ok := strings.CutPrefix(e.Key, attributeHeader); ok {
				m.deriveHeader(canonicalHeader(name), e.Value)
			}
		}
	}
}

func (m *Matcher) deriveHeader(name, value string) {
	if m.derived.Header == nil {
		m.derived.Header = map[string][]string{}
	}
	m.derived.Header[name] = append(m.derived.Header[name], value)
}

// addDescriptor puts a rule into the index of descriptors: by all its keys and
// by the first value that it asks for.
func (s *Set) addDescriptor(rule *Rule) {
	match := rule.compiled.match.descriptor
	place, value := len(match), ""
	for i := len(match) - 1; i >= 0; i-- {
		if match[i].Value != nil {
			place, value = i, *match[i].Value
		}
	}
	var key []byte
	for i := range match {
		key = appendDescriptorKey(key, match[i].Key)
	}
	key = appendDescriptorValue(key, place, value)
	s.descriptors[string(key)] = append(s.descriptors[string(key)], int32(rule.Index))
}

// findByDescriptor asks the index for rules with the view's keys, and one of its
// values or none. What only looks alike is sorted out by view.carries.
func (s *Set) findByDescriptor(m *Matcher) {
	entries := m.view.entries
	if len(s.descriptors) == 0 || len(entries) > maxEntries || !opensToDescriptorRules(entries) {
		return
	}
	m.text = m.text[:0]
	for i := range entries {
		m.text = appendDescriptorKey(m.text, entries[i].Key)
	}
	keys := len(m.text)
	for i := range len(entries) + 1 {
		value := ""
		if i < len(entries) {
			value = entries[i].Value
		}
		m.text = appendDescriptorValue(m.text[:keys], i, value)
		m.found = append(m.found, s.descriptors[string(m.text)]...)
	}
}

func appendDescriptorKey(dst []byte, key string) []byte {
	return append(append(dst, key...), 0)
}

func appendDescriptorValue(dst []byte, place int, value string) []byte {
	return append(append(dst, byte(place)), value...)
}

// descriptorValue is the value of a descriptor's entry, and how many there are
// of that key.
func descriptorValue(entries []DescriptorEntry, key string) (value string, found int) {
	for i := range entries {
		if entries[i].Key == key {
			value = entries[i].Value
			found++
		}
	}
	return value, found
}
