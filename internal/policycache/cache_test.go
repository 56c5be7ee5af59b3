package policycache

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
)

// shared is the backend of every policy here; namespace a has a login of its own.
var shared = Backend{
	Name:    policy.Name{Namespace: "infra", Name: "shared"},
	Spec:    v1alpha1.RedisBackendSpec{Mode: v1alpha1.RedisStandalone, Addresses: []v1alpha1.RedisAddress{"redis:6379"}},
	Secrets: backends.Secrets{Login: backends.Login{Username: "all", Password: "p"}},
	Own:     map[string]backends.Login{"a": {Username: "only-a", Password: "q"}},
}

// selecting is a policy for the pods with the label app, "" for every pod.
func selecting(namespace, name, app string) Policy {
	selector := &metav1.LabelSelector{}
	if app != "" {
		selector.MatchLabels = map[string]string{"app": app}
	}
	limit := int64(5)
	return Policy{
		Name: policy.Name{Namespace: namespace, Name: name}, Generation: 1, Backend: shared.Name,
		Spec: v1alpha1.RateLimitPolicySpec{Selector: selector, Rules: []v1alpha1.Rule{{Name: "r", Limit: &limit, Window: "1m"}}},
	}
}

func withDomain(p Policy) Policy {
	p.Spec.Domain = "front"
	return p
}

func pod(namespace, app string) Audience {
	return Audience{Namespace: namespace, Labels: map[string]string{"app": app}, Features: Known()}
}

func gateway(namespaces ...string) Audience {
	return Audience{Namespace: "edge", Gateway: true, Namespaces: namespaces, Features: Known()}
}

func filled(t *testing.T, policies ...Policy) *Cache {
	t.Helper()
	c := New()
	if err := c.SetBackend(shared); err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		if err := c.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
	}
	c.Synced()
	return c
}

func view(t *testing.T, c *Cache, a Audience) *View {
	t.Helper()
	v, ok := c.View(a)
	if !ok {
		t.Fatal("there is no view")
	}
	return v
}

// contents are what a view holds, as policy@user.
func contents(v *View) []string {
	users := map[LoginName]string{}
	for _, b := range v.Backends {
		users[b.LoginName] = b.Secrets.Login.Username
	}
	list := []string{}
	for _, p := range v.Policies {
		list = append(list, p.Name.String()+"@"+users[p.Login])
	}
	return list
}

func TestViewHoldsWhatConcernsAnAudience(t *testing.T) {
	c := filled(t, selecting("a", "web", "web"), selecting("a", "every", ""), withDomain(selecting("b", "front", "web")), withDomain(selecting("a", "edge", "none")))
	for _, test := range []struct {
		reason   string
		audience Audience
		want     []string
	}{
		{"a pod sees what selects it, with its namespace's login", pod("a", "web"), []string{"a/every@only-a", "a/web@only-a"}},
		{"another pod sees what selects every pod", pod("a", "api"), []string{"a/every@only-a"}},
		{"a pod of another namespace sees nothing of the first", pod("b", "web"), []string{"b/front@all"}},
		{"a pod of no namespace with policies sees an empty set", pod("c", "web"), []string{}},
		{"a gateway sees domains, each with its namespace's login", gateway("*"), []string{"a/edge@only-a", "b/front@all"}},
		{"a gateway sees its namespaces only", gateway("b", "c"), []string{"b/front@all"}},
		{"a gateway without namespaces sees nothing", gateway(), []string{}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if diff := cmp.Diff(test.want, contents(view(t, c, test.audience))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNothingIsSeenBeforeAllIsKnown(t *testing.T) {
	c := New()
	if _, ok := c.View(pod("a", "web")); ok {
		t.Error("a cache that knows nothing shows a view")
	}
	woken := 0
	defer c.Watch(pod("a", "web"), func() { woken++ })()
	c.Synced()
	c.Synced()
	if v := view(t, c, pod("a", "web")); len(v.Policies) != 0 || woken != 1 {
		t.Errorf("%d policies, woken %d times, want an empty set once", len(v.Policies), woken)
	}
}

func TestChangesWakeThoseWhomTheyConcern(t *testing.T) {
	changed := shared
	changed.Secrets.Login.Password = "new"
	longer := selecting("a", "web", "web")
	longer.Spec.Rules[0].Window = "2m"
	for _, test := range []struct {
		reason string
		change func(*Cache)
		want   []string
	}{
		{"a policy that stays as it was", func(c *Cache) { _ = c.SetPolicy(selecting("a", "web", "web")) }, nil},
		{"a policy that is edited", func(c *Cache) { _ = c.SetPolicy(longer) }, []string{"web of a"}},
		{"a policy that leaves a pod for another", func(c *Cache) { _ = c.SetPolicy(selecting("a", "web", "api")) }, []string{"api of a", "web of a"}},
		{"a policy that is deleted", func(c *Cache) { c.DeletePolicy(longer.Name) }, []string{"web of a"}},
		{"a policy that was not there", func(c *Cache) { c.DeletePolicy(policy.Name{Namespace: "a", Name: "x"}) }, nil},
		{"a policy with a domain", func(c *Cache) { _ = c.SetPolicy(withDomain(selecting("c", "new", "none"))) }, []string{"gateway"}},
		{"a backend that stays as it was", func(c *Cache) { _ = c.SetBackend(shared) }, nil},
		{"a backend that changes", func(c *Cache) { _ = c.SetBackend(changed) }, []string{"web of a", "web of b"}},
		{"a backend that is deleted", func(c *Cache) { c.DeleteBackend(shared.Name) }, []string{"web of a", "web of b"}},
		{"the kill switch", func(c *Cache) { c.SetShadow(true) }, []string{"api of a", "gateway", "web of a", "web of b"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			c := filled(t, selecting("a", "web", "web"), selecting("b", "all", ""))
			var woken []string
			for name, a := range map[string]Audience{"web of a": pod("a", "web"), "api of a": pod("a", "api"), "web of b": pod("b", "web"), "gateway": gateway("*")} {
				defer c.Watch(a, func() { woken = append(woken, name) })()
			}
			test.change(c)
			slices.Sort(woken)
			if diff := cmp.Diff(test.want, woken); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestVersionsAreOfContent(t *testing.T) {
	c, other := filled(t, selecting("a", "web", ""), selecting("a", "more", "")), filled(t, selecting("a", "more", ""), selecting("a", "web", ""))
	before := view(t, c, pod("a", "web")).Version
	if view(t, other, pod("a", "web")).Version != before {
		t.Error("two replicas that know the same have two versions")
	}
	rotated := shared
	rotated.Own = map[string]backends.Login{"a": {Username: "only-a", Password: "rotated"}}
	if err := c.SetBackend(rotated); err != nil {
		t.Fatal(err)
	}
	if view(t, c, pod("a", "web")).Version == before {
		t.Error("another password is the same version")
	}
	if view(t, c, pod("b", "web")).Version != view(t, other, pod("b", "web")).Version {
		t.Error("another namespace's password is another version")
	}
}

func TestKillSwitchShowsShadow(t *testing.T) {
	disabled := selecting("a", "off", "")
	disabled.Spec.Mode = v1alpha1.ModeDisabled
	c := filled(t, selecting("a", "on", ""), disabled)
	for _, on := range []bool{true, false} {
		c.SetShadow(on)
		got := map[string]v1alpha1.Mode{}
		for _, p := range view(t, c, pod("a", "web")).Policies {
			decoded, err := policy.DecodePolicy(fmt.Appendf(nil, `{"spec": %s}`, p.JSON))
			if err != nil {
				t.Fatal(err)
			}
			got[p.Name.Name] = decoded.Spec.Mode
		}
		want := map[string]v1alpha1.Mode{"on": "", "off": v1alpha1.ModeDisabled}
		if on {
			want["on"] = v1alpha1.ModeShadow
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("kill switch %v, -want +got:\n%s", on, diff)
		}
	}
}

func TestPoliciesAreWithheldFromThoseWhoCannot(t *testing.T) {
	demanding := selecting("a", "demanding", "")
	demanding.Spec.Rules[0].Key = []v1alpha1.KeyPart{{Type: "Moon"}}
	c := filled(t, demanding, selecting("a", "plain", ""))
	v := view(t, c, pod("a", "web"))
	want := []Withheld{{demanding.Name, 1, []string{"key.Moon"}}}
	if diff := cmp.Diff(want, v.Withheld); diff != "" || len(v.Policies) != 1 {
		t.Errorf("%d policies; withheld, -want +got:\n%s", len(v.Policies), diff)
	}
}

func TestWhatNobodyCanEnforceIsKeptAsItWas(t *testing.T) {
	lost := selecting("a", "lost", "")
	lost.Backend.Name = "nowhere"
	c := filled(t, lost, selecting("a", "broken", "web"))
	c.HoldPolicy(policy.Name{Namespace: "a", Name: "broken"})
	v := view(t, c, pod("a", "api"))
	want := []Withheld{{Name: policy.Name{Namespace: "a", Name: "broken"}}, {Name: lost.Name, Generation: 1}}
	if diff := cmp.Diff(want, v.Withheld); diff != "" || len(v.Policies) != 0 {
		t.Errorf("%d policies; withheld, -want +got:\n%s", len(v.Policies), diff)
	}
}

func TestWatchersLeaveNothingBehind(t *testing.T) {
	c := filled(t)
	first, second := c.Watch(pod("a", "web"), func() {}), c.Watch(pod("a", "web"), func() {})
	first()
	if len(c.audiences) != 1 {
		t.Error("an audience is forgotten while somebody watches")
	}
	second()
	if len(c.audiences) != 0 {
		t.Error("an audience stays when nobody watches")
	}
}
