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
	var w writer
	first := legacyHeaders
	if least != nil {
		first = 0
		w.number(least.Rule.Limit)
		w.number(least.Remaining)
		w.number(least.Reset)
	}
	if standard {
		w.items(d.Quotas, appendPolicy)
		w.items(d.Quotas, appendQuota)
	}
	values := w.values()
	for i := range values {
		delete(h, canonical[first+i])
		h[quotaHeaders[first+i]] = values[i : i+1 : i+1]
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

// writer builds the values of several headers in one piece of memory.
type writer struct {
	text []byte
	ends [len(quotaHeaders)]int
	n    int
	buf  [256]byte
}

func (w *writer) end() {
	w.ends[w.n] = len(w.text)
	w.n++
}

func (w *writer) number(n int64) {
	if w.text == nil {
		w.text = w.buf[:0]
	}
	w.text = strconv.AppendInt(w.text, n, 10)
	w.end()
}

// values are the texts, cut from one string.
func (w *writer) values() []string {
	all := string(w.text)
	values := make([]string, w.n)
	start := 0
	for i := range values {
		values[i] = all[start:w.ends[i]]
		start = w.ends[i]
	}
	return values
}

// items writes a list of structured fields (RFC 9651), one for each quota that
// its policy shows, as draft-ietf-httpapi-ratelimit-headers-10 has them.
func (w *writer) items(quotas []limiter.Quota, appendItem func([]byte, *limiter.Quota) []byte) {
	if w.text == nil {
		w.text = w.buf[:0]
	}
	shown := 0
	for i := range quotas {
		q := &quotas[i]
		if !isListed(quotas, i) {
			continue
		}
		if shown > 0 {
			w.text = append(w.text, ", "...)
		}
		shown++
		w.text = append(w.text, '"')
		w.text = appendName(w.text, quotas, i, shown)
		w.text = append(w.text, '"')
		w.text = appendItem(w.text, q)
	}
	w.end()
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

func appendPolicy(dst []byte, q *limiter.Quota) []byte {
	return appendParameter(appendParameter(dst, ";q=", q.Rule.Limit), ";w=", q.Rule.Window)
}

func appendQuota(dst []byte, q *limiter.Quota) []byte {
	return appendParameter(appendParameter(dst, ";r=", q.Remaining), ";t=", q.Wait)
}
