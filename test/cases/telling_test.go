package cases

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// series are the names and labels of all metrics, without values.
func (s *site) series() (names []string) {
	s.t.Helper()
	for line := range strings.Lines(s.enforcers[0].page(s.t, "/metrics")) {
		if name, _, ok := strings.Cut(line, "} "); ok && strings.HasPrefix(name, "weir_") {
			names = append(names, name)
		}
	}
	return names
}

func TestCallersAreNoLabelsOfMetrics(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", perUser(1)))
	caller := s.from("127.0.0.2")
	caller.passed(2, "/", "X-User-Id", "first")
	before := s.series()
	for i := range 500 {
		if got := caller.passed(2, fmt.Sprint("/canary/", i), "X-User-Id", fmt.Sprint("canary", i)); got != 1 {
			t.Fatalf("caller %d: %d of 2 pass", i, got)
		}
	}
	after := s.series()
	if len(before) == 0 || len(after) != len(before) {
		t.Errorf("%d series became %d", len(before), len(after))
	}
	for where, text := range map[string]string{"metrics": strings.Join(after, "\n"), "the log": s.enforcers[0].log.String()} {
		if strings.Contains(text, "canary") {
			t.Errorf("%s name a caller: %s", where, text)
		}
	}
}

// TestWhatCallersSendInConfidenceIsKeptNowhere looks for one word wherever it could
// be read later.
func TestWhatCallersSendInConfidenceIsKeptNowhere(t *testing.T) {
	t.Parallel()
	const secret = "canary5038"
	keys := []string{
		"{type: Header, name: Authorization}", "{type: Header, name: Proxy-Authorization}", "{type: Header, name: Cookie}",
		"{type: Header, name: X-Api-Key}", "{type: Header, name: api-key}", "{type: Header, name: X-Session-Token}",
		"{type: Cookie, name: session}", "{type: QueryParam, name: access_token}", "{type: QueryParam, name: api_key}",
		"{type: QueryParam, name: token}", "{type: QueryParam, name: key}", "{type: Header, name: X-Plain, hash: true}",
	}
	spec := "  rules:\n"
	for i, key := range keys {
		spec += fmt.Sprintf("  - {name: r%d, limit: 2, window: 366d, key: [%s]}\n", i, key)
	}
	breaking := func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/break" {
			panic(http.ErrAbortHandler)
		}
	}
	s := open(t, setup{handler: breaking}, policy("p", spec))
	caller := s.from("127.0.0.2")
	fields := []string{"X-Plain", secret, "X-Api-Key", secret, "Api-Key", secret, "X-Session-Token", secret,
		"Authorization", "Bearer " + secret, "Proxy-Authorization", "Basic " + secret, "Cookie", "session=" + secret}
	const query = "?access_token=" + secret + "&api_key=" + secret + "&token=" + secret + "&key=" + secret
	var answers []string
	for _, path := range []string{"/break", "/", "/"} {
		r := caller.get(path+query, fields...)
		answers = append(answers, fmt.Sprint(r.status, r.header, r.body))
	}
	if len(s.keys()) != len(keys) {
		t.Errorf("%d counters, want %d", len(s.keys()), len(keys))
	}
	s.rawGet("/%zz"+secret, "X-Api-Key: "+secret)
	s.raw("GET /" + secret + " HTTP/1.1\r\nHost: a/" + secret + "\r\n\r\n")
	s.edit(policy("q", spec))
	for where, text := range map[string]string{
		"the answers":    strings.Join(answers, "\n"),
		"the log":        s.enforcers[0].log.String(),
		"metrics":        s.enforcers[0].page(t, "/metrics"),
		"the debug page": s.enforcers[0].page(t, "/debug/policies"),
		"names of keys":  strings.Join(s.everyKey(), "\n"),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in %s: %s", where, text)
		}
	}
}
