package policy

import (
	"fmt"
	"net/netip"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// DefaultKeyPrefix starts keys where a backend names no prefix.
const DefaultKeyPrefix = "rl"

// compiledPolicy is what matching needs of a policy.
type compiledPolicy struct {
	client         *ClientResolver
	clientSpec     string // equal for policies that see callers alike
	form           pathForm
	countPreflight bool
	exempt         []matcher
}

// compiledRule is what matching and keys need of a rule.
type compiledRule struct {
	match   matcher
	parts   []keyPart
	hashKey []byte
	keyHead string // <prefix>:{
	keyTail string // }:<namespace>/<policy>/<rule>:<window>:
}

// matcher is one compiled match. Hosts, methods and paths are what the index of
// a Set is built of, and what exemptions compare one by one.
type matcher struct {
	hosts      []string
	methods    []string
	exact      []string
	prefixes   []string // without slash at the end; "" holds for every path
	patterns   []*regexp.Regexp
	headers    []headerMatcher
	ranges     []netip.Prefix
	descriptor []v1alpha1.DescriptorMatch
}

type headerMatcher struct {
	name    string
	kind    v1alpha1.HeaderMatchType
	value   string
	pattern *regexp.Regexp
}

// Compile makes a policy ready to match. The error of an invalid one lists all
// that is wrong with it.
func Compile(p *v1alpha1.RateLimitPolicy, d Defaults) (*Policy, error) {
	if errs := ValidatePolicy(p); len(errs) > 0 {
		return nil, fmt.Errorf("policy %s/%s: %w", p.Namespace, p.Name, errs.ToAggregate())
	}
	if d.KeyPrefix == "" {
		d.KeyPrefix = DefaultKeyPrefix
	}
	compiled := &Policy{
		Name:        Name{Namespace: p.Namespace, Name: p.Name},
		Domain:      p.Spec.Domain,
		Mode:        orDefault(p.Spec.Mode, v1alpha1.ModeEnforce),
		FailureMode: orDefault(p.Spec.FailureMode, v1alpha1.FailureAllow),
		Response:    compileResponse(p.Spec.Response),
	}
	if err := compiled.compileOptions(&p.Spec, d); err != nil {
		return nil, fmt.Errorf("policy %s: %w", compiled.Name, err)
	}
	for i := range p.Spec.Rules {
		rule, err := compiled.compileRule(&p.Spec.Rules[i], d)
		if err != nil {
			return nil, fmt.Errorf("policy %s: compile rule %q: %w", compiled.Name, p.Spec.Rules[i].Name, err)
		}
		compiled.Rules = append(compiled.Rules, rule)
	}
	return compiled, nil
}

func orDefault[T ~string](value, otherwise T) T {
	if value == "" {
		return otherwise
	}
	return value
}

func compileResponse(r *v1alpha1.ResponseOptions) Response {
	response := Response{Standard: true, Legacy: true}
	if r == nil {
		return response
	}
	if r.Headers != nil {
		response.Standard, response.Legacy = false, false
		for _, family := range r.Headers {
			response.Standard = response.Standard || family == v1alpha1.HeadersStandard
			response.Legacy = response.Legacy || family == v1alpha1.HeadersLegacy
		}
	}
	response.Minimal = r.Detail == v1alpha1.DetailMinimal
	if r.CORS != nil {
		for _, origin := range r.CORS.AllowOrigins {
			response.AllowOrigins = append(response.AllowOrigins, string(origin))
		}
	}
	return response
}

// compileOptions compiles what holds for all rules of the policy.
func (p *Policy) compileOptions(spec *v1alpha1.RateLimitPolicySpec, d Defaults) error {
	address := spec.ClientAddress
	if address == nil {
		address = d.ClientAddress
	}
	client, err := NewClientResolver(address)
	if err != nil {
		return fmt.Errorf("compile clientAddress: %w", err)
	}
	p.compiled.client = client
	p.compiled.clientSpec = fmt.Sprint(*client)
	if spec.Request != nil {
		p.compiled.form.foldCase = spec.Request.PathCase == v1alpha1.PathCaseInsensitive
		p.compiled.form.strictSlash = spec.Request.TrailingSlash == v1alpha1.TrailingSlashStrict
		p.compiled.countPreflight = spec.Request.Preflight == v1alpha1.PreflightCount
	}
	for i := range spec.Exempt {
		m, err := compileMatch(&spec.Exempt[i].Match, p.compiled.form)
		if err != nil {
			return fmt.Errorf("compile exemption %q: %w", spec.Exempt[i].Name, err)
		}
		p.compiled.exempt = append(p.compiled.exempt, m)
	}
	return nil
}

func (p *Policy) compileRule(r *v1alpha1.Rule, d Defaults) (*Rule, error) {
	window, err := ParseWindow(r.Window)
	if err != nil {
		return nil, err
	}
	rule := &Rule{Policy: p, Name: r.Name, Limit: *r.Limit, Window: window}
	rule.compiled.hashKey = d.HashKey
	rule.compiled.keyHead = d.KeyPrefix + ":{"
	rule.compiled.keyTail = "}:" + p.Name.String() + "/" + r.Name + ":" + strconv.FormatInt(window, 10) + ":"
	if r.Match != nil {
		if rule.compiled.match, err = compileMatch(r.Match, p.compiled.form); err != nil {
			return nil, err
		}
	}
	for i := range r.Key {
		rule.compiled.parts = append(rule.compiled.parts, compileKeyPart(&r.Key[i]))
	}
	return rule, nil
}

func compileMatch(m *v1alpha1.Match, form pathForm) (matcher, error) {
	c := matcher{hosts: m.Hosts, methods: m.Methods, descriptor: m.Descriptor}
	for i := range m.Paths {
		if err := c.addPath(&m.Paths[i], form); err != nil {
			return c, err
		}
	}
	for i := range m.Headers {
		h := headerMatcher{name: canonicalHeader(m.Headers[i].Name), kind: m.Headers[i].Type}
		if m.Headers[i].Value != nil {
			h.value = *m.Headers[i].Value
		}
		if h.kind == v1alpha1.HeaderMatchRegularExpression {
			pattern, err := compilePattern(h.value, false)
			if err != nil {
				return c, err
			}
			h.pattern = pattern
		}
		c.headers = append(c.headers, h)
	}
	for _, text := range m.ClientCIDRs {
		prefix, err := ParseRange(string(text))
		if err != nil {
			return c, fmt.Errorf("client range %q: %w", text, err)
		}
		c.ranges = append(c.ranges, prefix)
	}
	return c, nil
}

func (m *matcher) addPath(p *v1alpha1.PathMatch, form pathForm) error {
	switch p.Type {
	case v1alpha1.PathMatchExact:
		m.exact = append(m.exact, form.apply(CleanPath(p.Value)))
	case v1alpha1.PathMatchPrefix:
		prefix := form.apply(CleanPath(p.Value))
		m.prefixes = append(m.prefixes, strings.TrimSuffix(prefix, "/"))
	default:
		pattern, err := compilePattern(p.Value, form.foldCase)
		if err != nil {
			return err
		}
		m.patterns = append(m.patterns, pattern)
	}
	return nil
}

// compilePattern compiles a regular expression that must hold for a whole text.
func compilePattern(text string, foldCase bool) (*regexp.Regexp, error) {
	flags := ""
	if foldCase {
		flags = "(?i)"
	}
	pattern, err := regexp.Compile(flags + `^(?:` + text + `)$`)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", text, err)
	}
	return pattern, nil
}

func canonicalHeader(name string) string { return textproto.CanonicalMIMEHeaderKey(name) }
