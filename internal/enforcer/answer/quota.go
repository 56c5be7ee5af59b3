package answer

import (
	"net/http"
	"strconv"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// Names of the quota headers, as they are written.
const (
	headerLimit     = "X-RateLimit-Limit"
	headerRemaining = "X-RateLimit-Remaining"
	headerReset     = "X-RateLimit-Reset"
	headerPolicy    = "RateLimit-Policy"
	headerQuota     = "RateLimit"
)

// quotaHeaders are all of them: first the legacy ones, then the standard ones.
var quotaHeaders = [...]string{headerLimit, headerRemaining, headerReset, headerPolicy, headerQuota}

// legacyHeaders is how many of quotaHeaders are legacy ones.
const legacyHeaders = 3

// canonical are the names under which net/http keeps what the application sent.
var canonical = func() (names [len(quotaHeaders)]string) {
	for i, name := range quotaHeaders {
		names[i] = http.CanonicalHeaderKey(name)
	}
	return names
}()

// maxItems is how many limits the standard headers list.
const maxItems = 10

// SetHeaders writes the quota headers of a decision into h, in place of those of
// the same family that are there. A family that no policy shows is the
// application's: it is left alone.
func SetHeaders(h http.Header, d *limiter.Decision) {
	standard, least := families(d)
	if !standard && least == nil {
		return
	}
	// Everything is written in one piece of memory on the stack, as long as it fits,
	// and then cut from one string.
	var room [256]byte
	var ends [len(quotaHeaders)]int
	text, first, end := room[:0], legacyHeaders, legacyHeaders
	if least != nil {
		first = 0
		for i, number := range [legacyHeaders]int64{least.Rule.Limit, least.Remaining, least.Reset} {
			text = strconv.AppendInt(text, number, 10)
			ends[i] = len(text)
		}
	}
	if standard {
		end = len(quotaHeaders)
		for i := legacyHeaders; i < end; i++ {
			text = appendItems(text, d.Quotas, quotaHeaders[i])
			ends[i] = len(text)
		}
	}
	all, values, start := string(text), make([]string, end-first), 0
	for i := range values {
		at := first + i
		values[i] = all[start:ends[at]]
		start = ends[at]
		delete(h, canonical[at])
		h[quotaHeaders[at]] = values[i : i+1 : i+1]
	}
}

// families tells whether a policy shows standard headers, and which quota the
// legacy ones show: the one with the least left, nil if no policy shows them.
func families(d *limiter.Decision) (standard bool, least *limiter.Quota) {
	for i := range d.Quotas {
		q := &d.Quotas[i]
		standard = standard || q.Rule.Policy.Response.Standard
		if !q.Rule.Policy.Response.Legacy {
			continue
		}
		if least == nil || tighter(q, least) {
			least = q
		}
	}
	return standard, least
}

// tighter tells that a holds the caller back more than b: less is left, or it
// denied, or it lasts longer. So the legacy headers agree with Retry-After.
func tighter(a, b *limiter.Quota) bool {
	switch {
	case a.Remaining != b.Remaining:
		return a.Remaining < b.Remaining
	case a.Over != b.Over:
		return a.Over
	}
	return a.Wait > b.Wait
}

// isListed tells that quotas[i] is among the maxItems tightest of those that the
// standard headers show.
func isListed(quotas []limiter.Quota, i int) bool {
	q := &quotas[i]
	if !q.Rule.Policy.Response.Standard {
		return false
	}
	if len(quotas) <= maxItems {
		return true
	}
	before := 0
	for j := range quotas {
		other := &quotas[j]
		if j != i && other.Rule.Policy.Response.Standard && (tighter(other, q) || j < i && !tighter(q, other)) {
			before++
		}
	}
	return before < maxItems
}

// appendItems writes a list of structured fields (RFC 9651), one for each quota
// that its policy shows, as draft-ietf-httpapi-ratelimit-headers-10 has them.
func appendItems(dst []byte, quotas []limiter.Quota, header string) []byte {
	shown := 0
	for i := range quotas {
		if !isListed(quotas, i) {
			continue
		}
		if shown > 0 {
			dst = append(dst, ", "...)
		}
		shown++
		dst = append(dst, '"')
		dst = appendName(dst, quotas, i, shown)
		dst = append(dst, '"')
		dst = appendItem(dst, header, &quotas[i])
	}
	return dst
}

// appendName names an item by its rule, by policy.rule where another policy has
// a rule of that name (with the namespace where even that is not enough), and by
// its place where names are hidden. Names of rules and policies need no escape in
// a structured field.
func appendName(dst []byte, quotas []limiter.Quota, i, place int) []byte {
	rule := quotas[i].Rule
	if rule.Policy.Response.Minimal {
		return strconv.AppendInt(append(dst, 'r'), int64(place), 10)
	}
	shared, twin := false, false
	for j := range quotas {
		if other := quotas[j].Rule; other.Name == rule.Name && other.Policy != rule.Policy {
			shared, twin = true, twin || other.Policy.Name.Name == rule.Policy.Name.Name
		}
	}
	if twin {
		dst = append(append(dst, rule.Policy.Name.Namespace...), '/')
	}
	if shared {
		dst = append(append(dst, rule.Policy.Name.Name...), '.')
	}
	return append(dst, rule.Name...)
}

// maxInteger is the largest integer of a structured field (RFC 9651 section
// 3.3.1); one that is larger would make clients drop the whole field.
const maxInteger = 999_999_999_999_999

func appendParameter(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), min(n, maxInteger), 10)
}

// appendItem writes what a header tells of a quota. A function value for each
// header instead would move what it appends to onto the heap.
func appendItem(dst []byte, header string, q *limiter.Quota) []byte {
	if header == headerPolicy {
		return appendParameter(appendParameter(dst, ";q=", q.Rule.Limit), ";w=", q.Rule.Window)
	}
	return appendParameter(appendParameter(dst, ";r=", q.Remaining), ";t=", q.Wait)
}
