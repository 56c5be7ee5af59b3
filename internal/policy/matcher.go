package policy

import "net/netip"

// Matcher is the scratch space and the result of one Set.Match. Reuse it for
// requests one after the other; its contents last until the next Match. It keeps
// nothing of a request.
type Matcher struct {
	// Matches are the rules that count the request, in Rule.Index order; with
	// descriptors, in that order within each of them.
	Matches []Match
	// Exempt are the policies that would have counted the request, if an
	// exemption had not held.
	Exempt []*Policy
	// ExemptBy are the names of those exemptions, by the index in Exempt;
	// "preflight" where it was a CORS preflight.
	ExemptBy []string
	// Skipped are the rules that do not count the request, because a key part
	// was missing and its onMissing is Skip.
	Skipped []*Rule
	// ForwardedIgnored tells that the request carries a forwarded address that
	// some policy ignored because it does not trust the peer.
	ForwardedIgnored bool

	view    view
	derived Request // what the attributes of a descriptor say
	found   []int32
	clients []resolvedClient
	key     []byte
	text    []byte
}

// resolvedClient is the caller as one resolver sees it.
type resolvedClient struct {
	resolver *ClientResolver
	addr     netip.Addr
	ignored  bool // a forwarded address, because the peer is not trusted
}

// maxKept is how many results a Matcher keeps room for.
const maxKept = 1024

// Reset drops all results, for a Matcher that is put aside.
func (m *Matcher) Reset() {
	m.Matches = emptied(m.Matches)
	m.Exempt = emptied(m.Exempt)
	m.ExemptBy = emptied(m.ExemptBy)
	m.Skipped = emptied(m.Skipped)
	m.clients = emptied(m.clients)
	m.ForwardedIgnored = false
}

// emptied drops what a slice holds, and the slice, if it grew much.
func emptied[T any](s []T) []T {
	clear(s)
	if cap(s) > maxKept {
		return nil
	}
	return s[:0]
}

// client finds the caller's address as the policy sees it, once for policies
// that see alike.
func (m *Matcher) client(p *Policy) netip.Addr {
	resolver := p.compiled.client
	for i := range m.clients {
		if m.clients[i].resolver == resolver {
			return m.clients[i].addr
		}
	}
	addr, ignored := resolver.Resolve(m.view.req)
	m.ForwardedIgnored = m.ForwardedIgnored || ignored
	m.clients = append(m.clients, resolvedClient{resolver, addr, ignored})
	return addr
}

// bucketText is the address by which the policy counts the caller; "" where the
// connection has none. It holds until m.text is written again.
func (m *Matcher) bucketText(p *Policy) string {
	bucket := p.compiled.client.Bucket(m.client(p))
	if !bucket.IsValid() {
		return ""
	}
	m.text = bucket.AppendTo(m.text[:0])
	return textOf(m.text)
}
