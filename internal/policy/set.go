package policy

// Set is all policies that an enforcer holds, indexed so that a request meets
// only the rules that can match it. It never changes.
type Set struct {
	policies []*Policy
	rules    []*Rule
}

// Policies returns the policies by Policy.Index, ordered by namespace and name.
func (s *Set) Policies() []*Policy { return s.policies }

// Rules returns all rules by Rule.Index.
func (s *Set) Rules() []*Rule { return s.rules }

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
}
