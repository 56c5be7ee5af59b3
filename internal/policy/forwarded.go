package policy

// ForwardedIgnoredBy tells, after a Match of req, that p looked for the caller's
// address and ignored a forwarded one because it does not trust the peer.
func (m *Matcher) ForwardedIgnoredBy(req *Request, p *Policy) bool {
	if !m.ForwardedIgnored {
		return false
	}
	for i := range m.clients {
		if m.clients[i].resolver == p.compiled.client {
			_, ignored := p.compiled.client.Resolve(req)
			return ignored
		}
	}
	return false
}
