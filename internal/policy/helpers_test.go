package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// rulesOf are the names of the rules that count a request.
func rulesOf(t testing.TB, s *Set, req *Request) []string {
	t.Helper()
	var m Matcher
	s.Match(req, &m)
	var names []string
	for _, match := range m.Matches {
		names = append(names, match.Rule.Name)
	}
	return names
}

func wantRules(t testing.TB, s *Set, req *Request, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, rulesOf(t, s, req), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
