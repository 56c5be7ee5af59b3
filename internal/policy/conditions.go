package policy

import (
	"fmt"
	"net/netip"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// conditions are one compiled match; all of them must hold, and what is empty
// holds for every request. Hosts, methods and paths are what the index of a Set
// is built of, and what exemptions and descriptor rules compare one by one.
type conditions struct {
	hosts      []string // clean; "*.example.com" for a wildcard
	methods    []string
	exact      []string
	prefixes   []string // without slash at the end; "" holds for every path
	patterns   []*pathPattern
	headers    []headerCondition
	ranges     []netip.Prefix
	descriptor []v1alpha1.DescriptorMatch
}

// pathPattern is a regular expression that must hold for a whole path.
type pathPattern struct {
	expression *regexp.Regexp
	// start is what every path that it holds for begins with: a cheap first look.
	start string
}

func (p *pathPattern) holds(path string) bool {
	return strings.HasPrefix(path, p.start) && p.expression.MatchString(path)
}

// headerCondition holds for some values of a header.
type headerCondition struct {
	name    string // canonical
	kind    v1alpha1.HeaderMatchType
	value   string
	pattern *regexp.Regexp
}

func compileMatch(m *v1alpha1.Match, form pathForm) (conditions, error) {
	c := conditions{methods: m.Methods, descriptor: m.Descriptor}
	for _, host := range m.Hosts {
		if suffix, ok := strings.CutPrefix(host, "*."); ok {
			c.hosts = append(c.hosts, "*."+CleanHost(suffix))
		} else {
			c.hosts = append(c.hosts, CleanHost(host))
		}
	}
	for i := range m.Paths {
		if err := c.addPath(&m.Paths[i], form); err != nil {
			return c, err
		}
	}
	for i := range m.Headers {
		if err := c.addHeader(&m.Headers[i]); err != nil {
			return c, err
		}
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

func (c *conditions) addPath(p *v1alpha1.PathMatch, form pathForm) error {
	switch p.Type {
	case v1alpha1.PathMatchExact:
		c.exact = append(c.exact, form.apply(CleanPath(p.Value)))
	case v1alpha1.PathMatchPrefix:
		// Prefixes are whole segments, so a slash at the end says nothing.
		c.prefixes = append(c.prefixes, strings.TrimSuffix(form.apply(CleanPath(p.Value)), "/"))
	default:
		expression, err := compilePattern(p.Value, form.foldCase)
		if err != nil {
			return err
		}
		pattern := &pathPattern{expression: expression}
		// An expression that does not compile without anchors has no known start.
		if bare, err := regexp.Compile(p.Value); err == nil && !form.foldCase {
			pattern.start, _ = bare.LiteralPrefix()
		}
		c.patterns = append(c.patterns, pattern)
	}
	return nil
}

func (c *conditions) addHeader(m *v1alpha1.HeaderMatch) error {
	h := headerCondition{name: canonicalHeader(m.Name), kind: m.Type}
	if m.Value != nil {
		h.value = trimSpace(*m.Value)
	}
	if h.kind == v1alpha1.HeaderMatchRegularExpression {
		pattern, err := compilePattern(*m.Value, false)
		if err != nil {
			return err
		}
		h.pattern = pattern
	}
	c.headers = append(c.headers, h)
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

// everything tells that there are no conditions.
func (c *conditions) everything() bool {
	return !c.aboutHTTP() && len(c.ranges)+len(c.descriptor) == 0
}

// aboutHTTP tells that there are conditions on what only an HTTP request has.
func (c *conditions) aboutHTTP() bool {
	return len(c.hosts)+len(c.methods)+c.paths()+len(c.headers) > 0
}

func (c *conditions) paths() int { return len(c.exact) + len(c.prefixes) + len(c.patterns) }

// maxIndexed is how many places in the index one rule may take. A rule with more
// combinations of hosts, paths and methods has its methods compared one by one.
const maxIndexed = 256

// indexedMethods are the methods by which the index tells the rule from others.
func (c *conditions) indexedMethods() []string {
	if max(1, len(c.hosts))*max(1, c.paths())*len(c.methods) > maxIndexed {
		return nil
	}
	return c.methods
}

// hold tells that all conditions hold, without an index.
func (c *conditions) hold(m *Matcher, p *Policy) bool {
	if c.aboutHTTP() && !m.view.http {
		return false
	}
	return c.holdForHost(m.view.host) && c.holdForPath(m.view.path(p.compiled.form)) && c.holdBesides(m, p)
}

// holdBesides checks what the index has not: headers, addresses, descriptors,
// and methods where there were too many.
func (c *conditions) holdBesides(m *Matcher, p *Policy) bool {
	if len(c.methods) > 0 && !slices.Contains(c.methods, m.view.req.Method) {
		return false
	}
	if len(c.descriptor) > 0 && !m.view.carries(c.descriptor) {
		return false
	}
	for i := range c.headers {
		if !c.headers[i].holds(m.view.header(c.headers[i].name)) {
			return false
		}
	}
	return len(c.ranges) == 0 || inAny(c.ranges, m.client(p))
}

func (c *conditions) holdForHost(host string) bool {
	if len(c.hosts) == 0 {
		return true
	}
	for _, h := range c.hosts {
		if suffix, ok := strings.CutPrefix(h, "*"); ok {
			if len(host) > len(suffix) && strings.HasSuffix(host, suffix) {
				return true
			}
		} else if h == host {
			return true
		}
	}
	return false
}

func (c *conditions) holdForPath(path string) bool {
	if c.paths() == 0 || slices.Contains(c.exact, path) {
		return true
	}
	for _, prefix := range c.prefixes {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (prefix == "" || rest == "" || rest[0] == '/') {
			return true
		}
	}
	return slices.ContainsFunc(c.patterns, func(p *pathPattern) bool { return p.holds(path) })
}

func (h *headerCondition) holds(lines []string) bool {
	switch h.kind {
	case v1alpha1.HeaderMatchPresent:
		return len(lines) > 0
	case v1alpha1.HeaderMatchAbsent:
		return len(lines) == 0
	}
	for _, line := range lines {
		value := trimSpace(line)
		if h.pattern == nil && value == h.value || h.pattern != nil && h.pattern.MatchString(value) {
			return true
		}
	}
	return false
}

// trimSpace drops the white space that HTTP allows around a field's value.
func trimSpace(s string) string { return strings.Trim(s, " \t") }
