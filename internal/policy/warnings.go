package policy

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Warnings says what a valid policy probably does not mean. Each is a sentence.
func Warnings(p *v1alpha1.RateLimitPolicy) []string {
	var w []string
	if every(p.Spec.Rules, chosenByClient) {
		w = append(w, "every rule is keyed by something that a client can choose freely, so a new value each time is never limited: add a rule with key ClientIP, or read the key with trustedFrom: Proxies")
	}
	if every(p.Spec.Rules, skippedByClient) {
		w = append(w, "every rule leaves out callers who do not send its key, so they are not limited at all: add a rule with key ClientIP, or use another onMissing than Skip")
	}
	w = append(w, believesNobody(&p.Spec)...)
	w = append(w, exemptsEverybody(p.Spec.Exempt)...)
	return append(w, neverDeny(p.Spec.Rules)...)
}

func every(rules []v1alpha1.Rule, holds func(*v1alpha1.KeyPart) bool) bool {
	for i := range rules {
		if !anyPart(rules[i].Key, holds) {
			return false
		}
	}
	return len(rules) > 0
}

func anyPart(key []v1alpha1.KeyPart, holds func(*v1alpha1.KeyPart) bool) bool {
	for i := range key {
		if holds(&key[i]) {
			return true
		}
	}
	return false
}

// chosenByClient tells that a part is what the client says it is. A descriptor is
// what a gateway says.
func chosenByClient(part *v1alpha1.KeyPart) bool {
	switch part.Type {
	case v1alpha1.KeyHeader:
		return part.TrustedFrom != v1alpha1.TrustedFromProxies
	case v1alpha1.KeyCookie, v1alpha1.KeyQueryParam, v1alpha1.KeyPathSegment, v1alpha1.KeyPath, v1alpha1.KeyHost:
		return true
	}
	return false
}

func skippedByClient(part *v1alpha1.KeyPart) bool {
	return part.OnMissing == v1alpha1.OnMissingSkip
}

// believesNobody warns of headers that are to be believed from proxies where
// there are none.
func believesNobody(spec *v1alpha1.RateLimitPolicySpec) (w []string) {
	a := spec.ClientAddress
	if a == nil || a.TrustedHops == nil || *a.TrustedHops > 0 {
		return nil
	}
	trusted := func(part *v1alpha1.KeyPart) bool { return part.TrustedFrom == v1alpha1.TrustedFromProxies }
	for i := range spec.Rules {
		if r := &spec.Rules[i]; anyPart(r.Key, trusted) {
			w = append(w, fmt.Sprintf("rule %q reads a header from trusted proxies only, but trustedHops: 0 trusts none, so the header is always missing", r.Name))
		}
	}
	return w
}

// exemptsEverybody warns of exemptions that leave nothing to count.
func exemptsEverybody(exempt []v1alpha1.Exemption) (w []string) {
	for i := range exempt {
		m := &exempt[i].Match
		if len(m.Hosts)+len(m.Methods)+len(m.Headers)+len(m.Descriptor) == 0 &&
			(len(m.Paths) == 0 || slices.ContainsFunc(m.Paths, isEveryPath)) &&
			(len(m.ClientCIDRs) == 0 || slices.ContainsFunc(m.ClientCIDRs, isEveryAddress)) {
			w = append(w, fmt.Sprintf("exemption %q holds for every path and for every address of a family: to turn the policy off, set mode: Disabled", exempt[i].Name))
		}
	}
	return w
}

func isEveryPath(m v1alpha1.PathMatch) bool {
	return m.Type == v1alpha1.PathMatchPrefix && m.Value == "/"
}

func isEveryAddress(text v1alpha1.AddressRange) bool {
	r, err := ParseRange(string(text))
	return err == nil && r.Bits() == 0
}

// neverDeny warns of rules whose limit is out of reach, because a rule for the
// same requests and callers admits no more in that time.
func neverDeny(rules []v1alpha1.Rule) (w []string) {
	for i := range rules {
		for j := range rules {
			if long, short := &rules[i], &rules[j]; i != j && outOfReach(long, short) {
				w = append(w, fmt.Sprintf("rule %q never denies: rule %q admits at most as many in the same time (%d/%s against %d/%s)", long.Name, short.Name, *short.Limit, short.Window, *long.Limit, long.Window))
				break
			}
		}
	}
	return w
}

// outOfReach tells that as many whole windows of the one rule as fit into one of
// the other admit no more than that one's limit.
func outOfReach(long, short *v1alpha1.Rule) bool {
	longer, err := ParseWindow(long.Window)
	if err != nil || long.Limit == nil || short.Limit == nil || *long.Limit == 0 {
		return false
	}
	shorter, err := ParseWindow(short.Window)
	if err != nil || longer <= shorter || longer%shorter != 0 {
		return false
	}
	return *short.Limit <= *long.Limit/(longer/shorter) &&
		reflect.DeepEqual(long.Match, short.Match) && reflect.DeepEqual(long.Key, short.Key)
}
