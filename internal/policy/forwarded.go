package policy

// ForwardedIgnoredBy tells, after a Match of the request, that p looked for the
// caller's address and ignored a forwarded one because it does not trust the
// peer.
func (m *Matcher) ForwardedIgnoredBy(_ *Request, p *Policy) bool {
	for i := range m.clients {
		if m.clients[i].resolver == p.compiled.client {
			return m.clients[i].ignored
		}
	}
	return false
}
