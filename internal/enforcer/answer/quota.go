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

// quotaHeaders are all of them; those of the application give way.
var quotaHeaders = [...]string{headerLimit, headerRemaining, headerReset, headerPolicy, headerQuota}

// canonical are the names under which net/http keeps what the application sent.
var canonical = func() (names [len(quotaHeaders)]string) {
	for i, name := range quotaHeaders {
		names[i] = http.CanonicalHeaderKey(name)
	}
	return names
}()

// maxItems is how many limits the standard headers list.
const maxItems = 10

// SetHeaders writes the quota headers of a decision into h, in place of any that
// are there. Without a quota to show it leaves h alone.
func SetHeaders(h http.Header, d *limiter.Decision) {
	standard, least := families(d)
	if !standard && least == nil {
		return
	}
	for i := range canonical {
		delete(h, canonical[i])
	}
	var w writer
	if least != nil {
		w.number(least.Rule.Limit)
		w.number(least.Remaining)
		w.number(least.Reset)
	}
	if standard {
		w.items(d.Quotas, appendPolicy)
		w.items(d.Quotas, appendQuota)
	}
	values := w.values()
	names := quotaHeaders[:]
	if least == nil {
		names = names[3:]
	}
	for i := range values {
		h[names[i]] = values[i : i+1 : i+1]
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
		if least == nil || q.Remaining < least.Remaining || q.Remaining == least.Remaining && q.Over && !least.Over {
			least = q
		}
	}
	return standard, least
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
		if !q.Rule.Policy.Response.Standard || shown == maxItems {
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
// a rule of that name, and by its place where names are hidden. Names of rules
// and policies need no escape in a structured field.
func appendName(dst []byte, quotas []limiter.Quota, i, place int) []byte {
	rule := quotas[i].Rule
	if rule.Policy.Response.Minimal {
		return strconv.AppendInt(append(dst, 'r'), int64(place), 10)
	}
	for j := range quotas {
		if other := quotas[j].Rule; j != i && other.Name == rule.Name && other.Policy != rule.Policy {
			dst = append(dst, rule.Policy.Name.Name...)
			dst = append(dst, '.')
			break
		}
	}
	return append(dst, rule.Name...)
}

func appendPolicy(dst []byte, q *limiter.Quota) []byte {
	dst = strconv.AppendInt(append(dst, ";q="...), q.Rule.Limit, 10)
	return strconv.AppendInt(append(dst, ";w="...), q.Rule.Window, 10)
}

func appendQuota(dst []byte, q *limiter.Quota) []byte {
	dst = strconv.AppendInt(append(dst, ";r="...), q.Remaining, 10)
	return strconv.AppendInt(append(dst, ";t="...), q.Wait, 10)
}
