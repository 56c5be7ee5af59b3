package policy

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// The forms of texts in a spec. They say what the CRD's schema says.
var (
	namePattern     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	objectPattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	domainPattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	tokenPattern    = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)
	hostPattern     = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$|^\[[0-9a-f:.]+\]$`)
	methodPattern   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	originPattern   = regexp.MustCompile(`^(\*|[a-z][a-z0-9+.-]*://[a-z0-9._\[\]:-]+)$`)
	timeoutPattern  = regexp.MustCompile(`^[1-9][0-9]{0,4}(ms|s)$`)
	addressPattern  = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):([1-9][0-9]{0,4})$`)
	keyPrefixFormat = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)
)

// checker collects what is wrong with a spec.
type checker struct {
	errs field.ErrorList
}

func (c *checker) invalid(path *field.Path, value any, mend string) {
	c.errs = append(c.errs, field.Invalid(path, value, mend))
}

// enum reports a value that is none of the known ones. Empty is for absent.
func enum[T ~string](c *checker, path *field.Path, value T, known ...T) {
	if value != "" && !slices.Contains(known, value) {
		c.errs = append(c.errs, field.NotSupported(path, value, known))
	}
}

// text reports a text that is missing, too long or of the wrong form.
func (c *checker) text(path *field.Path, value string, longest int, form *regexp.Regexp, mend string) {
	switch {
	case value == "":
		c.errs = append(c.errs, field.Required(path, mend))
	case len([]rune(value)) > longest:
		c.errs = append(c.errs, field.TooLong(path, value, longest))
	case form != nil && !form.MatchString(value):
		c.invalid(path, value, mend)
	}
}

// optional is text for a field that may be absent.
func (c *checker) optional(path *field.Path, value string, longest int, form *regexp.Regexp, mend string) {
	if value != "" {
		c.text(path, value, longest, form, mend)
	}
}

// count reports a list that is too long.
func (c *checker) count(path *field.Path, n, most int) {
	if n > most {
		c.errs = append(c.errs, field.TooMany(path, n, most))
	}
}

// unique reports values that stand in a list twice.
func unique[T comparable](c *checker, path *field.Path, values []T, at func(*field.Path, int) *field.Path) {
	seen := map[T]bool{}
	for i, value := range values {
		if seen[value] {
			c.errs = append(c.errs, field.Duplicate(at(path, i), value))
		}
		seen[value] = true
	}
}

func itself(path *field.Path, i int) *field.Path { return path.Index(i) }
func itsName(path *field.Path, i int) *field.Path {
	return path.Index(i).Child("name")
}

// number reports a number out of bounds.
func number[T int32 | int64](c *checker, path *field.Path, value, least, most T) {
	if value < least || value > most {
		c.invalid(path, value, fmt.Sprintf("write a number from %d to %d", least, most))
	}
}

// pattern reports a text that is no regular expression.
func (c *checker) pattern(path *field.Path, value string) {
	if len([]rune(value)) > 256 {
		c.invalid(path, value, "a regular expression is at most 256 characters long")
		return
	}
	if _, err := compilePattern(value, false); err != nil {
		c.invalid(path, value, "write a regular expression in RE2 syntax: "+err.Error())
	}
}

// ranges checks CIDRs and addresses.
func (c *checker) ranges(path *field.Path, ranges []v1alpha1.AddressRange) {
	c.count(path, len(ranges), 64)
	for i, text := range ranges {
		if _, err := ParseRange(string(text)); err != nil {
			c.invalid(path.Index(i), text, err.Error())
		}
	}
}

// ValidatePolicy says all that is wrong with a policy, each with how to mend it.
// It accepts what the CRD's schema accepts.
func ValidatePolicy(p *v1alpha1.RateLimitPolicy) field.ErrorList {
	c := &checker{}
	spec, path := &p.Spec, field.NewPath("spec")
	if spec.Selector == nil && spec.Domain == "" {
		c.errs = append(c.errs, field.Required(path, "set selector (pods whose sidecars enforce the policy), domain (doors that ask for it), or both; selector: {} takes every pod of the namespace"))
	}
	c.optional(path.Child("domain"), spec.Domain, 63, domainPattern, "write letters, digits, dots, dashes and underscores, with a letter or digit at both ends")
	if ref := spec.RedisRef; ref != nil {
		c.text(path.Child("redisRef", "name"), ref.Name, 253, objectPattern, "write the name of a RedisBackend")
		c.optional(path.Child("redisRef", "namespace"), ref.Namespace, 63, namePattern, "write the name of a namespace")
	}
	enum(c, path.Child("mode"), spec.Mode, v1alpha1.ModeEnforce, v1alpha1.ModeShadow, v1alpha1.ModeDisabled)
	enum(c, path.Child("failureMode"), spec.FailureMode, v1alpha1.FailureAllow, v1alpha1.FailureDeny, v1alpha1.FailureLocalFallback)
	c.clientAddress(path.Child("clientAddress"), spec.ClientAddress)
	if r := spec.Request; r != nil {
		request := path.Child("request")
		enum(c, request.Child("pathCase"), r.PathCase, v1alpha1.PathCaseSensitive, v1alpha1.PathCaseInsensitive)
		enum(c, request.Child("trailingSlash"), r.TrailingSlash, v1alpha1.TrailingSlashIgnore, v1alpha1.TrailingSlashStrict)
		enum(c, request.Child("preflight"), r.Preflight, v1alpha1.PreflightExempt, v1alpha1.PreflightCount)
	}
	c.response(path.Child("response"), spec.Response)
	c.exempt(path.Child("exempt"), spec.Exempt)
	c.rules(path.Child("rules"), spec.Rules)
	return c.errs
}

func (c *checker) clientAddress(path *field.Path, a *v1alpha1.ClientAddress) {
	if a == nil {
		return
	}
	if (a.TrustedProxies != nil) == (a.TrustedHops != nil) {
		c.invalid(path, "", "set exactly one of trustedProxies and trustedHops")
	}
	if a.TrustedProxies != nil && len(a.TrustedProxies) == 0 {
		c.errs = append(c.errs, field.Required(path.Child("trustedProxies"), "name at least one proxy; to trust nobody, write trustedHops: 0"))
	}
	c.ranges(path.Child("trustedProxies"), a.TrustedProxies)
	if a.TrustedHops != nil {
		number(c, path.Child("trustedHops"), *a.TrustedHops, 0, 16)
	}
	c.optional(path.Child("header"), a.Header, 128, tokenPattern, "write the name of a header")
	if a.IPv6PrefixLength != nil {
		number(c, path.Child("ipv6PrefixLength"), *a.IPv6PrefixLength, 32, 128)
	}
}

func (c *checker) response(path *field.Path, r *v1alpha1.ResponseOptions) {
	if r == nil {
		return
	}
	headers := path.Child("headers")
	for i, family := range r.Headers {
		if family == "" {
			c.errs = append(c.errs, field.Required(headers.Index(i), "write Standard or Legacy"))
		}
		enum(c, headers.Index(i), family, v1alpha1.HeadersStandard, v1alpha1.HeadersLegacy)
	}
	unique(c, headers, r.Headers, itself)
	enum(c, path.Child("detail"), r.Detail, v1alpha1.DetailFull, v1alpha1.DetailMinimal)
	if r.CORS == nil {
		return
	}
	origins := path.Child("cors", "allowOrigins")
	if len(r.CORS.AllowOrigins) == 0 {
		c.errs = append(c.errs, field.Required(origins, "name at least one origin, such as https://shop.example.com"))
	}
	c.count(origins, len(r.CORS.AllowOrigins), 32)
	for i, origin := range r.CORS.AllowOrigins {
		c.text(origins.Index(i), string(origin), 260, originPattern, "write an origin as browsers send it, such as https://shop.example.com, or *")
	}
	unique(c, origins, r.CORS.AllowOrigins, itself)
}

func (c *checker) exempt(path *field.Path, exempt []v1alpha1.Exemption) {
	c.count(path, len(exempt), 16)
	names := make([]string, len(exempt))
	for i := range exempt {
		e, at := &exempt[i], path.Index(i)
		names[i] = e.Name
		c.text(at.Child("name"), e.Name, 63, namePattern, "write lower-case letters, digits and dashes")
		m := &e.Match
		if len(m.Hosts)+len(m.Methods)+len(m.Paths)+len(m.Headers)+len(m.ClientCIDRs)+len(m.Descriptor) == 0 {
			c.errs = append(c.errs, field.Required(at.Child("match"), "say which requests are exempt; to exempt all, set mode: Disabled"))
		}
		c.match(at.Child("match"), m)
	}
	unique(c, path, names, itsName)
}
