package policy

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// DefaultKeyPrefix starts keys where a backend names no prefix.
const DefaultKeyPrefix = "rl"

// keyTextPattern is for what stands in keys unescaped. Files, unlike clusters, can
// give a policy any name.
var keyTextPattern = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// compiledPolicy is what matching needs of a policy.
type compiledPolicy struct {
	client         *ClientResolver
	clientSpec     string // equal for policies that see callers alike
	form           pathForm
	countPreflight bool
	exempt         []exemption
}

// exemption is what a policy leaves alone.
type exemption struct {
	name  string
	match conditions
}

// compiledRule is what matching and keys need of a rule.
type compiledRule struct {
	match   conditions
	parts   []keyPart
	hashKey []byte
	keyHead string // <prefix>:{
	keyTail string // }:<namespace>/<policy>/<rule>:<window>:
	keyless string // the whole key where there are no parts
}

// Compile makes a policy ready to match. The error of an invalid one lists all
// that is wrong with it.
func Compile(p *v1alpha1.RateLimitPolicy, d Defaults) (*Policy, error) {
	if errs := ValidatePolicy(p); len(errs) > 0 {
		return nil, fmt.Errorf("policy %s/%s: %w", p.Namespace, p.Name, errs.ToAggregate())
	}
	d.KeyPrefix = orDefault(d.KeyPrefix, DefaultKeyPrefix)
	for _, text := range []string{d.KeyPrefix, p.Namespace, p.Name} {
		if !keyTextPattern.MatchString(text) {
			return nil, fmt.Errorf("policy %s/%s: %q cannot stand in a key: write letters, digits, dots, dashes and underscores", p.Namespace, p.Name, text)
		}
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
		p.compiled.exempt = append(p.compiled.exempt, exemption{name: spec.Exempt[i].Name, match: m})
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
	if len(r.Key) == 0 {
		rule.compiled.keyless = rule.compiled.keyHead + p.Name.String() + rule.compiled.keyTail
	}
	for i := range r.Key {
		rule.compiled.parts = append(rule.compiled.parts, compileKeyPart(&r.Key[i]))
	}
	return rule, nil
}
