package policy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestHeaderConditions(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  selector: {}
  rules:
  - {name: exact, limit: 1, window: 1s, match: {headers: [{name: x-tier, type: Exact, value: gold}]}}
  - {name: present, limit: 1, window: 1s, match: {headers: [{name: X-TIER, type: Present}]}}
  - {name: absent, limit: 1, window: 1s, match: {headers: [{name: X-Tier, type: Absent}]}}
  - {name: pattern, limit: 1, window: 1s, match: {headers: [{name: X-Tier, type: RegularExpression, value: "gold|silver"}]}}
  - {name: all, limit: 1, window: 1s, match: {headers: [{name: X-Tier, type: Present}, {name: X-B, type: Present}]}}
  - {name: host, limit: 1, window: 1s, match: {headers: [{name: Host, type: Exact, value: "shop.example.com:80"}]}}
`)})
	for _, c := range []struct {
		reason string
		lines  []string
		want   []string
	}{
		{"no line", nil, []string{"absent", "host"}},
		{"the value", []string{"gold"}, []string{"exact", "present", "pattern", "host"}},
		{"space around the value", []string{" gold\t"}, []string{"exact", "present", "pattern", "host"}},
		{"an empty line is there", []string{""}, []string{"present", "host"}},
		{"any of the lines", []string{"bronze", "gold"}, []string{"exact", "present", "pattern", "host"}},
		{"an expression is anchored", []string{"silvery"}, []string{"present", "host"}},
		{"values' case matters", []string{"Gold"}, []string{"present", "host"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			req := &Request{Method: "GET", Host: "shop.example.com:80", Path: "/", Peer: peer, Header: map[string][]string{}}
			if c.lines != nil {
				req.Header["X-Tier"] = c.lines
			}
			wantRules(t, s, req, c.want...)
		})
	}
}

func TestExemptions(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "counting", `
  selector: {}
  request: {preflight: Count}
  rules: [{name: all, limit: 1, window: 1s}]
`), compileYAML(t, "exempting", `
  selector: {}
  exempt:
  - {name: probes, match: {paths: [{type: Exact, value: /healthz}]}}
  - {name: office, match: {clientCIDRs: [192.168.11.0/24], methods: [GET]}}
  rules: [{name: api, limit: 1, window: 1s, match: {paths: [{type: Prefix, value: /}], headers: [{name: X-Off, type: Absent}]}}]
`)})
	preflight := map[string][]string{"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"PUT"}}
	for _, c := range []struct {
		reason string
		req    Request
		want   []string
		exempt []string
	}{
		{"nothing special", Request{Method: "GET", Path: "/"}, []string{"all", "api"}, nil},
		{"an exempt path in another spelling", Request{Method: "GET", Path: "//x/../healthz/"}, []string{"all"}, []string{"probes"}},
		{"an exempt address", Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.168.11.7")}, []string{"all"}, []string{"office"}},
		{"half of an exemption", Request{Method: "POST", Path: "/", Peer: netip.MustParseAddr("192.168.11.7")}, []string{"all", "api"}, nil},
		{"a preflight", Request{Method: "OPTIONS", Path: "/", Header: preflight}, []string{"all"}, []string{"preflight"}},
		{"a plain OPTIONS", Request{Method: "OPTIONS", Path: "/"}, []string{"all", "api"}, nil},
		{"an exemption where no rule would count", Request{Method: "GET", Path: "/healthz", Header: map[string][]string{"X-Off": {"1"}}}, []string{"all"}, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			wantRules(t, s, &c.req, c.want...)
			var m Matcher
			s.Match(&c.req, &m)
			if diff := cmp.Diff(c.exempt, m.ExemptBy, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("exempt (-want +got):\n%s", diff)
			}
			if len(m.Exempt) != len(c.exempt) {
				t.Errorf("exempt policies %v", m.Exempt)
			}
		})
	}
}

func TestModesMatch(t *testing.T) {
	spec := "  selector: {}\n  mode: %s\n  rules: [{name: %s, limit: 1, window: 1s}]\n"
	s := NewSet([]*Policy{
		compileYAML(t, "c", fmt.Sprintf(spec, "Disabled", "disabled")),
		compileYAML(t, "b", fmt.Sprintf(spec, "Shadow", "shadow")),
		compileYAML(t, "a", fmt.Sprintf(spec, "Enforce", "enforce")),
	})
	wantRules(t, s, &Request{Path: "/", Peer: peer}, "enforce", "shadow")
	for i, p := range s.Policies() {
		if p.Index != i || p.Rules[0].Index != i || p.Rules[0].Policy != p || s.Rules()[i] != p.Rules[0] || p.Name.Name != string(rune('a'+i)) {
			t.Errorf("policy %d is %v", i, p.Name)
		}
	}
}

func TestAPolicyCanBeInSeveralSets(t *testing.T) {
	a, b := compileYAML(t, "a", "  selector: {}\n  rules: [{name: a, limit: 1, window: 1s}]\n"), compileYAML(t, "b", "  selector: {}\n  rules: [{name: b, limit: 1, window: 1s}]\n")
	both, one := NewSet([]*Policy{b, a}), NewSet([]*Policy{b})
	if both.Policies()[1].Index != 1 || one.Policies()[0].Index != 0 || b.Rules[0].Index != 0 {
		t.Error("sets share an index")
	}
	var m Matcher // one matcher serves sets in turn
	for range 2 {
		both.Match(&Request{Path: "/"}, &m)
		if len(m.Matches) != 2 || m.Matches[1].Rule != both.Rules()[1] {
			t.Errorf("matches %v", m.Matches)
		}
		one.Match(&Request{Path: "/"}, &m)
		if len(m.Matches) != 1 || m.Matches[0].Rule != one.Rules()[0] {
			t.Errorf("matches %v", m.Matches)
		}
	}
}

// drawMatch draws a match from values that often meet those of drawRequest.
func drawMatch(t *rapid.T) *v1alpha1.Match {
	m := &v1alpha1.Match{
		Hosts:   rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a.example", "b.a.example", "*.a.example", "*.example"}), 0, 3, rapid.ID[string]).Draw(t, "hosts"),
		Methods: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"GET", "POST"}), 0, 2, rapid.ID[string]).Draw(t, "methods"),
	}
	kinds := rapid.SampledFrom([]v1alpha1.PathMatchType{v1alpha1.PathMatchExact, v1alpha1.PathMatchPrefix, v1alpha1.PathMatchRegularExpression})
	values := rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/b/c", "/A", "/a/"})
	for range rapid.IntRange(0, 3).Draw(t, "paths") {
		m.Paths = append(m.Paths, v1alpha1.PathMatch{Type: kinds.Draw(t, "kind"), Value: values.Draw(t, "value")})
	}
	return m
}

// holdsPlainly is the meaning of a match, without compiling or an index.
func holdsPlainly(m *v1alpha1.Match, form pathForm, req *Request) bool {
	path := form.apply(CleanPath(req.Path))
	host := func(h string) bool {
		suffix, wild := strings.CutPrefix(h, "*")
		return h == req.Host || wild && strings.HasSuffix(req.Host, suffix)
	}
	matches := func(p v1alpha1.PathMatch) bool {
		value := form.apply(p.Value)
		switch p.Type {
		case v1alpha1.PathMatchExact:
			return path == value
		case v1alpha1.PathMatchPrefix:
			value = strings.TrimSuffix(value, "/")
			return path == value || strings.HasPrefix(path, value+"/")
		}
		expression := "^(?:" + p.Value + ")$"
		if form.foldCase {
			expression = "(?i)" + expression
		}
		return regexp.MustCompile(expression).MatchString(path)
	}
	return (len(m.Hosts) == 0 || slices.ContainsFunc(m.Hosts, host)) &&
		(len(m.Methods) == 0 || slices.Contains(m.Methods, req.Method)) &&
		(len(m.Paths) == 0 || slices.ContainsFunc(m.Paths, matches))
}

func TestTheIndexFindsWhatMatchesAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type drawn struct {
			match *v1alpha1.Match
			form  pathForm
		}
		var policies []*Policy
		byRule := map[string]drawn{}
		for i := range rapid.IntRange(1, 4).Draw(t, "policies") {
			form := pathForm{foldCase: rapid.Bool().Draw(t, "fold"), strictSlash: rapid.Bool().Draw(t, "strict")}
			p := &v1alpha1.RateLimitPolicy{Spec: v1alpha1.RateLimitPolicySpec{Domain: "d", Request: &v1alpha1.RequestOptions{}}}
			p.Namespace, p.Name = "n", fmt.Sprintf("p%d", i)
			if form.foldCase {
				p.Spec.Request.PathCase = v1alpha1.PathCaseInsensitive
			}
			if form.strictSlash {
				p.Spec.Request.TrailingSlash = v1alpha1.TrailingSlashStrict
			}
			for j := range rapid.IntRange(1, 6).Draw(t, "rules") {
				limit, name, match := int64(1), fmt.Sprintf("r%d-%d", i, j), drawMatch(t)
				p.Spec.Rules = append(p.Spec.Rules, v1alpha1.Rule{Name: name, Limit: &limit, Window: "1s", Match: match})
				byRule[name] = drawn{match, form}
			}
			compiled, err := Compile(p, Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			policies = append(policies, compiled)
		}
		s := NewSet(policies)
		var m Matcher
		for range 5 {
			req := &Request{
				Method: rapid.SampledFrom([]string{"GET", "POST", "PUT"}).Draw(t, "method"),
				Host:   rapid.SampledFrom([]string{"a.example", "b.a.example", "c.b.a.example", "example", ".a.example"}).Draw(t, "host"),
				Path:   rapid.SampledFrom([]string{"/", "/a", "/a/", "/A/b", "/a/b/c/d", "/ab", "//a/./b", "/a/b/../b/c", "*"}).Draw(t, "path"),
			}
			if strings.HasPrefix(req.Host, ".") {
				continue // not a host; the tables say what happens
			}
			s.Match(req, &m)
			var got []string
			for _, match := range m.Matches {
				got = append(got, match.Rule.Name)
			}
			var want []string
			for _, rule := range s.Rules() {
				if d := byRule[rule.Name]; holdsPlainly(d.match, d.form, req) {
					want = append(want, rule.Name)
				}
			}
			if req.Path != "*" && !slices.Equal(got, want) {
				t.Fatalf("%s %s%s: rules %v, want %v", req.Method, req.Host, req.Path, got, want)
			}
		}
	})
}

func TestManyCombinationsAreCompared(t *testing.T) {
	list := func(form string) string {
		var values []string
		for i := range 16 {
			values = append(values, fmt.Sprintf(form, i))
		}
		return strings.Join(values, ", ")
	}
	s := NewSet([]*Policy{compileYAML(t, "p", "  selector: {}\n  rules: [{name: r, limit: 1, window: 1s, match: {hosts: ["+list("h%d")+"], methods: ["+list("M%d")+"], paths: ["+list("{type: Exact, value: /p%d}")+"]}}]\n")})
	wantRules(t, s, &Request{Method: "M15", Host: "h15", Path: "/p15"}, "r")
	wantRules(t, s, &Request{Method: "M16", Host: "h15", Path: "/p15"})
	wantRules(t, s, &Request{Method: "M15", Host: "h15", Path: "/p16"})
}
