package policy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// maxScratch is how much scratch space a Matcher keeps from one request to the
// next, in bytes of each kind.
const maxScratch = 64 << 10

// Matcher is the scratch space and the result of one Set.Match. Reuse it for
// requests one after the other; its contents last until the next Match.
type Matcher struct {
	// Matches are the rules that count the request, in Rule.Index order.
	Matches []Match
	// Exempt are the policies of which an exemption held.
	Exempt []*Policy
	// ForwardedIgnored tells that the request carries a forwarded address that
	// some policy ignored because it does not trust the peer.
	ForwardedIgnored bool

	host    string
	clean   []byte
	lower   []byte
	paths   [4]string // by pathForm, as far as needed; "" where not made yet
	found   []int32
	clients []resolvedClient
	key     []byte
	text    []byte
}

type resolvedClient struct {
	resolver *ClientResolver
	addr     netip.Addr
}

// Reset drops all that refers to a request, for a Matcher that is put aside.
func (m *Matcher) Reset() {
	clear(m.Matches)
	clear(m.Exempt)
	m.Matches, m.Exempt, m.ForwardedIgnored = m.Matches[:0], m.Exempt[:0], false
	m.host, m.paths = "", [4]string{}
	m.found, m.clients = m.found[:0], m.clients[:0]
	if cap(m.clean)+cap(m.lower)+cap(m.key)+cap(m.text) > maxScratch {
		m.clean, m.lower, m.key, m.text = nil, nil, nil, nil
	}
}

// Match finds the rules that count a request, and the counter of each. Matching
// itself allocates nothing; each counter's key is a new string.
func (s *Set) Match(req *Request, m *Matcher) {
	m.Reset()
	m.host = CleanHost(req.Host)
	if len(req.Descriptors) > 0 {
		s.matchDescriptors(req, m)
		return
	}
	for _, group := range s.groups {
		m.found = group.find(m.found, m.host, m.path(req, group.form), req.Method)
	}
	s.settle(req, m, -1)
}

// matchDescriptors finds the rules whose descriptor the request carries.
func (s *Set) matchDescriptors(req *Request, m *Matcher) {
	for d := range req.Descriptors {
		entries := req.Descriptors[d].Entries
		m.text = m.text[:0]
		for i := range entries {
			m.text = append(m.text, entries[i].Key...)
			m.text = append(m.text, 0)
		}
		m.found = m.found[:0]
		for _, index := range s.descriptors[string(m.text)] {
			if holdsDescriptor(s.rules[index].compiled.match.descriptor, entries) {
				m.found = append(m.found, index)
			}
		}
		s.settle(req, m, d)
	}
}

func holdsDescriptor(match []v1alpha1.DescriptorMatch, entries []DescriptorEntry) bool {
	for i := range match {
		if match[i].Value != nil && *match[i].Value != entries[i].Value {
			return false
		}
	}
	return true
}

// settle turns the rules found by the index into matches: what the index does
// not hold is checked, exemptions are applied, keys are built.
func (s *Set) settle(req *Request, m *Matcher, descriptor int) {
	slices.Sort(m.found)
	var current *Policy
	exempt := false
	for _, index := range slices.Compact(m.found) {
		rule := s.rules[index]
		if rule.Policy != current {
			current = rule.Policy
			if exempt = current.exempts(req, m); exempt && !slices.Contains(m.Exempt, current) {
				m.Exempt = append(m.Exempt, current)
			}
		}
		if exempt || !rule.compiled.match.holdsForCaller(req, m, current) {
			continue
		}
		missing, result := m.buildKey(req, rule, descriptor)
		switch result {
		case countedYes:
			m.Matches = append(m.Matches, Match{Rule: rule, Key: string(m.key), Missing: missing, Descriptor: descriptor})
		case countedDeny:
			m.Matches = append(m.Matches, Match{Rule: rule, Missing: true, Deny: true, Descriptor: descriptor})
		}
	}
}

// exempts tells that the policy leaves the request alone.
func (p *Policy) exempts(req *Request, m *Matcher) bool {
	if !p.compiled.countPreflight && isPreflight(req) {
		return true
	}
	for i := range p.compiled.exempt {
		if p.compiled.exempt[i].holds(req, m, p) {
			return true
		}
	}
	return false
}

// isPreflight follows the Fetch standard: OPTIONS with Origin and
// Access-Control-Request-Method.
func isPreflight(req *Request) bool {
	return req.Method == "OPTIONS" && len(req.Header["Origin"]) > 0 && len(req.Header["Access-Control-Request-Method"]) > 0
}

// holds tells that the whole matcher holds, without an index.
func (c *matcher) holds(req *Request, m *Matcher, p *Policy) bool {
	return c.holdsHost(m.host) &&
		(len(c.methods) == 0 || slices.Contains(c.methods, req.Method)) &&
		len(c.descriptor) == 0 &&
		c.holdsPath(m.path(req, p.compiled.form)) &&
		c.holdsForCaller(req, m, p)
}

func (c *matcher) holdsHost(host string) bool {
	if len(c.hosts) == 0 {
		return true
	}
	for _, h := range c.hosts {
		if wild, ok := strings.CutPrefix(h, "*"); ok {
			if len(host) > len(wild) && strings.HasSuffix(host, wild) {
				return true
			}
		} else if h == host {
			return true
		}
	}
	return false
}

func (c *matcher) holdsPath(path string) bool {
	if len(c.exact)+len(c.prefixes)+len(c.patterns) == 0 || slices.Contains(c.exact, path) {
		return true
	}
	for _, prefix := range c.prefixes {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	for _, pattern := range c.patterns {
		if pattern.MatchString(path) {
			return true
		}
	}
	return false
}

// holdsForCaller checks what no index holds: headers and the caller's address.
func (c *matcher) holdsForCaller(req *Request, m *Matcher, p *Policy) bool {
	for i := range c.headers {
		if !c.headers[i].holds(req.Header[c.headers[i].name]) {
			return false
		}
	}
	return len(c.ranges) == 0 || inAny(c.ranges, m.client(req, p))
}

func (h *headerMatcher) holds(values []string) bool {
	switch h.kind {
	case v1alpha1.HeaderMatchPresent:
		return len(values) > 0
	case v1alpha1.HeaderMatchAbsent:
		return len(values) == 0
	case v1alpha1.HeaderMatchExact:
		return slices.Contains(values, h.value)
	}
	return slices.ContainsFunc(values, h.pattern.MatchString)
}

// path is the request's path in a form, made once a request.
func (m *Matcher) path(req *Request, form pathForm) string {
	i := form.index()
	if m.paths[i] == "" {
		m.paths[i] = m.makePath(req, form)
	}
	return m.paths[i]
}

func (f pathForm) index() int {
	i := 0
	if f.foldCase {
		i++
	}
	if f.strictSlash {
		i += 2
	}
	return i
}

// makePath derives a form from the one that changes less: cleaned, then in lower
// case, then without the slash at the end.
func (m *Matcher) makePath(req *Request, form pathForm) string {
	switch {
	case !form.strictSlash:
		return trimSlash(m.path(req, pathForm{foldCase: form.foldCase, strictSlash: true}))
	case form.foldCase:
		path := m.path(req, pathForm{strictSlash: true})
		if !hasUpper(path) {
			return path
		}
		m.lower = appendLower(m.lower[:0], path)
		return textOf(m.lower)
	case isClean(req.Path):
		return req.Path
	}
	m.clean = appendClean(m.clean[:0], req.Path)
	return textOf(m.clean)
}
