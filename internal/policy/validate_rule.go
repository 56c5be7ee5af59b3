package policy

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// reservedRule names limits that come with a request of Envoy's rate limit
// service.
const reservedRule = "override"

func (c *checker) rules(path *field.Path, rules []v1alpha1.Rule) {
	if len(rules) == 0 {
		c.required(path, "write at least one rule")
	}
	c.count(path, len(rules), 32)
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].Name
		c.rule(path.Index(i), &rules[i])
	}
	unique(c, names, func(i int) *field.Path { return path.Index(i).Child("name") })
}

func (c *checker) rule(path *field.Path, r *v1alpha1.Rule) {
	if c.text(path.Child("name"), r.Name, nameForm) && r.Name == reservedRule {
		c.invalid(path.Child("name"), r.Name, "the name override is reserved for limits that come with a request; choose another name")
	}
	if r.Limit == nil {
		c.required(path.Child("limit"), "write how many requests are allowed per window; 0 blocks, and for no limit leave the rule out")
	}
	number(c, path.Child("limit"), r.Limit, 0, v1alpha1.MaxLimit)
	if r.Window == "" {
		c.required(path.Child("window"), errWindow.Error())
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
	texts(c, path.Child("hosts"), m.Hosts, 16, hostForm)
	texts(c, path.Child("methods"), m.Methods, 16, methodForm)
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
		c.text(at.Child("key"), d.Key, entryForm)
		c.length(at.Child("value"), d.Value, 256)
	}
}

// length reports a text that is too long. nil is for absent, and empty is a text.
func (c *checker) length(path *field.Path, value *string, longest int) {
	if value != nil && utf8.RuneCountInString(*value) > longest {
		c.errs = append(c.errs, field.TooLongCharacters(path, *value, longest))
	}
}

func (c *checker) path(path *field.Path, p *v1alpha1.PathMatch) {
	known := choice(c, path.Child("type"), p.Type, v1alpha1.PathMatchExact, v1alpha1.PathMatchPrefix, v1alpha1.PathMatchRegularExpression)
	value := path.Child("value")
	switch {
	case p.Value == "":
		c.required(value, pathText.mend)
	case !known: // what a value must be depends on the type
	case p.Type == v1alpha1.PathMatchRegularExpression:
		c.pattern(value, p.Value)
	case c.text(value, p.Value, pathText) && (p.Value[0] != '/' || strings.ContainsAny(p.Value, "?#")):
		c.invalid(value, p.Value, "a path starts with / and has neither query nor fragment")
	}
}

func (c *checker) header(path *field.Path, h *v1alpha1.HeaderMatch) {
	c.text(path.Child("name"), h.Name, tokenForm)
	if !choice(c, path.Child("type"), h.Type, v1alpha1.HeaderMatchExact, v1alpha1.HeaderMatchPresent, v1alpha1.HeaderMatchAbsent, v1alpha1.HeaderMatchRegularExpression) {
		return
	}
	value := path.Child("value")
	takesValue := h.Type == v1alpha1.HeaderMatchExact || h.Type == v1alpha1.HeaderMatchRegularExpression
	switch {
	case takesValue && h.Value == nil:
		c.required(value, "write the value to compare with, or use type Present")
	case !takesValue && h.Value != nil:
		c.forbidden(value, "value goes with type Exact and RegularExpression, and only with them")
	case h.Type == v1alpha1.HeaderMatchRegularExpression:
		c.pattern(value, *h.Value)
	default:
		c.length(value, h.Value, 1024)
	}
}

// The parts that a key can have, by what goes with them.
var (
	keyTypes = []v1alpha1.KeyPartType{
		v1alpha1.KeyClientIP, v1alpha1.KeyHeader, v1alpha1.KeyCookie, v1alpha1.KeyQueryParam, v1alpha1.KeyPathSegment,
		v1alpha1.KeyPath, v1alpha1.KeyHost, v1alpha1.KeyMethod, v1alpha1.KeyDescriptor,
	}
	keyNames = map[v1alpha1.KeyPartType]form{
		v1alpha1.KeyHeader:     tokenForm,
		v1alpha1.KeyCookie:     tokenForm,
		v1alpha1.KeyQueryParam: {nil, 128, "write the name of a query parameter"},
		v1alpha1.KeyDescriptor: entryForm,
	}
)

func (c *checker) keyPart(path *field.Path, p *v1alpha1.KeyPart) {
	known := choice(c, path.Child("type"), p.Type, keyTypes...)
	okMissing := p.OnMissing == "" || enum(c, path.Child("onMissing"), p.OnMissing, v1alpha1.OnMissingClientIP, v1alpha1.OnMissingSkip, v1alpha1.OnMissingDeny, v1alpha1.OnMissingShared)
	okTrusted := p.TrustedFrom == "" || enum(c, path.Child("trustedFrom"), p.TrustedFrom, v1alpha1.TrustedFromAnyone, v1alpha1.TrustedFromProxies)
	if !known { // what goes with it depends on the type
		return
	}
	nameForm, named := keyNames[p.Type]
	segment := p.Type == v1alpha1.KeyPathSegment
	if named {
		c.text(path.Child("name"), p.Name, nameForm)
	} else if p.Name != "" {
		c.forbidden(path.Child("name"), "name goes with type Header, Cookie, QueryParam and Descriptor, and only with them")
	}
	switch {
	case segment && p.Index == nil:
		c.required(path.Child("index"), "write which segment of the path counts, 0 for the first")
	case segment:
		number(c, path.Child("index"), p.Index, 0, 31)
	case p.Index != nil:
		c.forbidden(path.Child("index"), "index goes with type PathSegment, and only with it")
	}
	if okMissing && p.OnMissing != "" && !named && !segment {
		c.forbidden(path.Child("onMissing"), "onMissing goes with type Header, Cookie, QueryParam, PathSegment and Descriptor; the other parts are never missing")
	}
	if okTrusted && p.TrustedFrom != "" && p.Type != v1alpha1.KeyHeader {
		c.forbidden(path.Child("trustedFrom"), "trustedFrom goes with type Header only")
	}
}
