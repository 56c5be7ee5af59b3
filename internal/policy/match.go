package policy

import "slices"

// preflightExemption is the name under which an exempt preflight is reported.
const preflightExemption = "preflight"

// Match finds the rules that count a request, and the counter of each. Matching
// itself allocates nothing; each counter's key is a new string, unless the rule
// has no key.
func (s *Set) Match(req *Request, m *Matcher) {
	m.Reset()
	if len(req.Descriptors) > 0 {
		s.matchDescriptors(req, m)
	} else {
		m.view.descriptor, m.view.http = -1, true
		m.view.open(req)
		s.find(m)
		s.settle(m)
	}
	m.view.close()
	m.key, m.text = kept(m.key), kept(m.text)
}

// find asks the index for the rules whose host, path and method fit.
func (s *Set) find(m *Matcher) {
	m.found = m.found[:0]
	for _, group := range s.groups {
		m.found = group.find(m.found, m.view.host, m.view.path(group.form), m.view.req.Method)
	}
}

// settle turns what the index found into matches: the other conditions are
// checked, exemptions applied, keys built.
func (s *Set) settle(m *Matcher) {
	slices.Sort(m.found)
	var current *Policy
	exempt := false
	for _, index := range slices.Compact(m.found) {
		rule := s.rules[index]
		match := &rule.compiled.match
		if m.view.repeated && match.everything() || !match.holdBesides(m, rule.Policy) {
			continue
		}
		if rule.Policy != current {
			current = rule.Policy
			exempt = m.exempts(current)
		}
		if !exempt {
			m.count(rule)
		}
	}
}

// exempts tells that the policy leaves the request alone, and notes it.
func (m *Matcher) exempts(p *Policy) bool {
	name, exempt := p.exemption(m)
	if exempt && !slices.Contains(m.Exempt, p) {
		m.Exempt = append(m.Exempt, p)
		m.ExemptBy = append(m.ExemptBy, name)
	}
	return exempt
}

// exemption is the first exemption of the policy that holds.
func (p *Policy) exemption(m *Matcher) (name string, exempt bool) {
	if !p.compiled.countPreflight && isPreflight(m.view.req) {
		return preflightExemption, true
	}
	for i := range p.compiled.exempt {
		if p.compiled.exempt[i].match.hold(m, p) {
			return p.compiled.exempt[i].name, true
		}
	}
	return "", false
}

// isPreflight tells that a browser asks what a script may send (Fetch standard,
// CORS-preflight request).
func isPreflight(req *Request) bool {
	return req.Method == "OPTIONS" && len(req.Header["Origin"]) > 0 && len(req.Header["Access-Control-Request-Method"]) > 0
}

// count adds the rule to the matches, with its key.
func (m *Matcher) count(rule *Rule) {
	match := Match{Rule: rule, Key: rule.compiled.keyless, Descriptor: m.view.descriptor}
	if match.Key == "" {
		var missing outcome
		switch match.Missing, missing = m.buildKey(rule); missing {
		case leaveOut:
			m.Skipped = append(m.Skipped, rule)
			return
		case refuse:
			match.Deny = true
		default:
			match.Key = string(m.key)
		}
	}
	m.Matches = append(m.Matches, match)
}
