package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// ValidatePolicy says all that is wrong with a policy, each with how to mend it.
// It accepts what the CRD's schema accepts.
func ValidatePolicy(p *v1alpha1.RateLimitPolicy) field.ErrorList {
	c := &checker{}
	spec, path := &p.Spec, field.NewPath("spec")
	if spec.Selector == nil && spec.Domain == "" {
		c.required(path, "set selector (pods whose sidecars enforce the policy), domain (doors that ask for it), or both; selector: {} takes every pod of the namespace")
	}
	c.selector(path.Child("selector"), spec.Selector)
	c.optional(path.Child("domain"), spec.Domain, domainForm)
	if ref := spec.RedisRef; ref != nil {
		c.text(path.Child("redisRef", "name"), ref.Name, objectForm)
		c.optional(path.Child("redisRef", "namespace"), ref.Namespace, namespaceForm)
	}
	enum(c, path.Child("mode"), spec.Mode, v1alpha1.ModeEnforce, v1alpha1.ModeShadow, v1alpha1.ModeDisabled)
	enum(c, path.Child("failureMode"), spec.FailureMode, v1alpha1.FailureAllow, v1alpha1.FailureDeny, v1alpha1.FailureLocalFallback)
	c.clientAddress(path.Child("clientAddress"), spec.ClientAddress)
	c.request(path.Child("request"), spec.Request)
	c.response(path.Child("response"), spec.Response)
	c.exempt(path.Child("exempt"), spec.Exempt)
	c.rules(path.Child("rules"), spec.Rules)
	return c.errs
}

func (c *checker) clientAddress(path *field.Path, a *v1alpha1.ClientAddress) {
	if a == nil {
		return
	}
	switch {
	case a.TrustedProxies == nil && a.TrustedHops == nil:
		c.required(path, "set trustedProxies or trustedHops; to trust nobody, write trustedHops: 0")
	case a.TrustedProxies != nil && a.TrustedHops != nil:
		c.forbidden(path, "set trustedProxies or trustedHops, not both")
	case a.TrustedHops == nil && len(a.TrustedProxies) == 0:
		c.required(path.Child("trustedProxies"), "name at least one proxy; to trust nobody, write trustedHops: 0 instead")
	}
	c.ranges(path.Child("trustedProxies"), a.TrustedProxies)
	number(c, path.Child("trustedHops"), a.TrustedHops, 0, 16)
	c.optional(path.Child("header"), a.Header, tokenForm)
	number(c, path.Child("ipv6PrefixLength"), a.IPv6PrefixLength, 32, 128)
}

func (c *checker) request(path *field.Path, r *v1alpha1.RequestOptions) {
	if r == nil {
		return
	}
	enum(c, path.Child("pathCase"), r.PathCase, v1alpha1.PathCaseSensitive, v1alpha1.PathCaseInsensitive)
	enum(c, path.Child("trailingSlash"), r.TrailingSlash, v1alpha1.TrailingSlashIgnore, v1alpha1.TrailingSlashStrict)
	enum(c, path.Child("preflight"), r.Preflight, v1alpha1.PreflightExempt, v1alpha1.PreflightCount)
}

func (c *checker) response(path *field.Path, r *v1alpha1.ResponseOptions) {
	if r == nil {
		return
	}
	headers := path.Child("headers")
	for i, family := range r.Headers {
		choice(c, headers.Index(i), family, v1alpha1.HeadersStandard, v1alpha1.HeadersLegacy)
	}
	unique(c, r.Headers, func(i int) *field.Path { return headers.Index(i) })
	enum(c, path.Child("detail"), r.Detail, v1alpha1.DetailFull, v1alpha1.DetailMinimal)
	if r.CORS == nil {
		return
	}
	origins := path.Child("cors", "allowOrigins")
	if len(r.CORS.AllowOrigins) == 0 {
		c.required(origins, "name at least one origin, such as https://shop.example.com")
	}
	texts(c, origins, r.CORS.AllowOrigins, 32, originForm)
}

func (c *checker) exempt(path *field.Path, exempt []v1alpha1.Exemption) {
	c.count(path, len(exempt), 16)
	names := make([]string, len(exempt))
	for i := range exempt {
		e, at := &exempt[i], path.Index(i)
		names[i] = e.Name
		c.text(at.Child("name"), e.Name, nameForm)
		if holdsForAll(&e.Match) {
			c.required(at.Child("match"), "say which requests are exempt; to exempt all, set mode: Disabled")
		}
		c.match(at.Child("match"), &e.Match)
	}
	unique(c, names, func(i int) *field.Path { return path.Index(i).Child("name") })
}

func holdsForAll(m *v1alpha1.Match) bool {
	return len(m.Hosts)+len(m.Methods)+len(m.Paths)+len(m.Headers)+len(m.ClientCIDRs)+len(m.Descriptor) == 0
}
