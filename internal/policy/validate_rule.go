package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// reservedRule names limits that come with a request of Envoy's rate limit
// service.
const reservedRule = "override"

func (c *checker) rules(path *field.Path, rules []v1alpha1.Rule) {
	if len(rules) == 0 {
		c.errs = append(c.errs, field.Required(path, "write at least one rule"))
	}
	c.count(path, len(rules), 32)
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].Name
		c.rule(path.Index(i), &rules[i])
	}
	unique(c, path, names, itsName)
}

func (c *checker) rule(path *field.Path, r *v1alpha1.Rule) {
	c.text(path.Child("name"), r.Name, 63, namePattern, "write lower-case letters, digits and dashes")
	if r.Name == reservedRule {
		c.invalid(path.Child("name"), r.Name, "the name override is reserved for limits that come with a request; choose another name")
	}
	if r.Limit == nil {
		c.errs = append(c.errs, field.Required(path.Child("limit"), "write how many requests are allowed per window; 0 blocks, and for no limit leave the rule out"))
	} else {
		number(c, path.Child("limit"), *r.Limit, 0, v1alpha1.MaxLimit)
	}
	if r.Window == "" {
		c.errs = append(c.errs, field.Required(path.Child("window"), errWindow.Error()))
	} else if _, err := ParseWindow(r.Window); err != nil {
		c.invalid(path.Child("window"), r.Window, err.Error())
	}
	enum(c, path.Child("algorithm"), r.Algorithm, v1alpha1.AlgorithmFixedWindow)
	if r.Match != nil {
		c.match(path.Child("match"), r.Match)
	}
	c.count(path.Child("key"), len(r.Key), 8)
	for i := range r.Key {
		c.keyPart(path.Child("key").Index(i), &r.Key[i])
	}
}

func (c *checker) match(path *field.Path, m *v1alpha1.Match) {
	hosts := path.Child("hosts")
	c.count(hosts, len(m.Hosts), 16)
	for i, host := range m.Hosts {
		c.text(hosts.Index(i), host, 253, hostPattern, "write a host name in lower case without port, or a wildcard such as *.example.com")
	}
	unique(c, hosts, m.Hosts, itself)
	methods := path.Child("methods")
	c.count(methods, len(m.Methods), 16)
	for i, method := range m.Methods {
		c.text(methods.Index(i), method, 32, methodPattern, "write a method such as GET")
	}
	unique(c, methods, m.Methods, itself)
	c.count(path.Child("paths"), len(m.Paths), 16)
	for i := range m.Paths {
		c.path(path.Child("paths").Index(i), &m.Paths[i])
	}
	c.count(path.Child("headers"), len(m.Headers), 16)
	for i := range m.Headers {
		c.header(path.Child("headers").Index(i), &m.Headers[i])
	}
	c.ranges(path.Child("clientCIDRs"), m.ClientCIDRs)
	c.count(path.Child("descriptor"), len(m.Descriptor), 16)
	for i := range m.Descriptor {
		at, d := path.Child("descriptor").Index(i), &m.Descriptor[i]
		c.text(at.Child("key"), d.Key, 128, nil, "write the key of a descriptor's entry")
		if d.Value != nil {
			c.optional(at.Child("value"), *d.Value, 256, nil, "")
		}
	}
}

func (c *checker) path(path *field.Path, p *v1alpha1.PathMatch) {
	if p.Type == "" {
		c.errs = append(c.errs, field.Required(path.Child("type"), "write Exact, Prefix or RegularExpression"))
	}
	enum(c, path.Child("type"), p.Type, v1alpha1.PathMatchExact, v1alpha1.PathMatchPrefix, v1alpha1.PathMatchRegularExpression)
	value := path.Child("value")
	if p.Type == v1alpha1.PathMatchRegularExpression && p.Value != "" {
		c.pattern(value, p.Value)
		return
	}
	c.text(value, p.Value, 1024, nil, "write a path such as /api")
	if p.Value != "" && (p.Value[0] != '/' || strings.ContainsAny(p.Value, "?#")) {
		c.invalid(value, p.Value, "a path starts with / and has neither query nor fragment")
	}
}

func (c *checker) header(path *field.Path, h *v1alpha1.HeaderMatch) {
	c.text(path.Child("name"), h.Name, 128, tokenPattern, "write the name of a header")
	if h.Type == "" {
		c.errs = append(c.errs, field.Required(path.Child("type"), "write Exact, Present, Absent or RegularExpression"))
		return
	}
	enum(c, path.Child("type"), h.Type, v1alpha1.HeaderMatchExact, v1alpha1.HeaderMatchPresent, v1alpha1.HeaderMatchAbsent, v1alpha1.HeaderMatchRegularExpression)
	value := path.Child("value")
	takesValue := h.Type == v1alpha1.HeaderMatchExact || h.Type == v1alpha1.HeaderMatchRegularExpression
	switch {
	case takesValue != (h.Value != nil):
		c.invalid(value, "", "value goes with type Exact and RegularExpression, and only with them")
	case h.Value == nil:
	case h.Type == v1alpha1.HeaderMatchRegularExpression:
		c.pattern(value, *h.Value)
	default:
		c.optional(value, *h.Value, 1024, nil, "")
	}
}

func (c *checker) keyPart(path *field.Path, p *v1alpha1.KeyPart) {
	kind := p.Type
	if kind == "" {
		c.errs = append(c.errs, field.Required(path.Child("type"), "write ClientIP, Header, Cookie, QueryParam, PathSegment, Path, Host, Method or Descriptor"))
		return
	}
	enum(c, path.Child("type"), kind, v1alpha1.KeyClientIP, v1alpha1.KeyHeader, v1alpha1.KeyCookie, v1alpha1.KeyQueryParam,
		v1alpha1.KeyPathSegment, v1alpha1.KeyPath, v1alpha1.KeyHost, v1alpha1.KeyMethod, v1alpha1.KeyDescriptor)
	token := kind == v1alpha1.KeyHeader || kind == v1alpha1.KeyCookie
	named := token || kind == v1alpha1.KeyQueryParam || kind == v1alpha1.KeyDescriptor
	switch {
	case named != (p.Name != ""):
		c.invalid(path.Child("name"), p.Name, "name goes with type Header, Cookie, QueryParam and Descriptor, and only with them")
	case token:
		c.text(path.Child("name"), p.Name, 128, tokenPattern, "a header's or cookie's name holds only letters, digits and !#$%&'*+.^_|~-")
	default:
		c.optional(path.Child("name"), p.Name, 128, nil, "")
	}
	if (kind == v1alpha1.KeyPathSegment) != (p.Index != nil) {
		c.invalid(path.Child("index"), "", "index goes with type PathSegment, and only with it")
	} else if p.Index != nil {
		number(c, path.Child("index"), *p.Index, 0, 31)
	}
	enum(c, path.Child("onMissing"), p.OnMissing, v1alpha1.OnMissingClientIP, v1alpha1.OnMissingSkip, v1alpha1.OnMissingDeny, v1alpha1.OnMissingShared)
	if p.OnMissing != "" && !named && kind != v1alpha1.KeyPathSegment {
		c.invalid(path.Child("onMissing"), p.OnMissing, "onMissing goes with type Header, Cookie, QueryParam, PathSegment and Descriptor; the other parts are never missing")
	}
	enum(c, path.Child("trustedFrom"), p.TrustedFrom, v1alpha1.TrustedFromAnyone, v1alpha1.TrustedFromProxies)
	if p.TrustedFrom != "" && kind != v1alpha1.KeyHeader {
		c.invalid(path.Child("trustedFrom"), p.TrustedFrom, "trustedFrom goes with type Header only")
	}
}

// Warnings says what a valid policy probably does not mean. Each is a sentence.
func Warnings(p *v1alpha1.RateLimitPolicy) []string {
	for i := range p.Spec.Rules {
		if !chosenByClient(p.Spec.Rules[i].Key) {
			return nil
		}
	}
	return []string{"every rule is keyed by something that a client can choose freely, so a new value each time is never limited: add a rule with key ClientIP, or read the key with trustedFrom: Proxies"}
}

// chosenByClient tells that some part of the key is what the client says it is.
func chosenByClient(key []v1alpha1.KeyPart) bool {
	for i := range key {
		switch key[i].Type {
		case v1alpha1.KeyHeader:
			if key[i].TrustedFrom != v1alpha1.TrustedFromProxies {
				return true
			}
		case v1alpha1.KeyCookie, v1alpha1.KeyQueryParam, v1alpha1.KeyPathSegment, v1alpha1.KeyPath, v1alpha1.KeyHost:
			return true
		}
	}
	return false
}
