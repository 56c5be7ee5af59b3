package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/distribution"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

var (
	storefront = policy.Name{Namespace: "shop", Name: "storefront"}
	redis      = policycache.LoginName{Backend: policy.Name{Namespace: "shop", Name: "default"}}
)

// pod is a ready pod of the app web with containers of these names.
func pod(name string, containers ...string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}}}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func changed(p corev1.Pod, change func(*corev1.Pod)) corev1.Pod {
	change(&p)
	return p
}

// confirms is a confirmation of a pod's enforcer for a generation of storefront.
func confirms(name string, generation int64) distribution.Confirmation {
	return distribution.Confirmation{Namespace: "shop", Pod: name, UID: name, Set: &distribution.Confirmed{
		Policies: map[policy.Name]distribution.ConfirmedPolicy{storefront: {Generation: generation, Login: redis}},
	}}
}

func TestEnforcedTellsWhoDoesAndWhoDoesNot(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	cutOff := confirms("a", 2)
	cutOff.Unreachable = []policycache.LoginName{redis}
	old := confirms("a", 1)
	old.Set.Withheld = map[policy.Name][]string{storefront: {"key.Moon"}}
	door := confirms("door", 2)
	door.Gateway = true
	for _, test := range []struct {
		reason        string
		pods          []corev1.Pod
		confirmations []distribution.Confirmation
		mode          v1alpha1.Mode
		domain        string
		want          string
	}{
		{"all have confirmed", []corev1.Pod{pod("a", "weir"), pod("b", "app", "weir")}, []distribution.Confirmation{confirms("a", 2), confirms("b", 2)}, "", "", "2/2 Enforced"},
		{"in Shadow", []corev1.Pod{pod("a", "weir")}, []distribution.Confirmation{confirms("a", 2)}, v1alpha1.ModeShadow, "", "1/1 Shadow"},
		{"one has not confirmed", []corev1.Pod{pod("a", "weir"), pod("b", "weir")}, []distribution.Confirmation{confirms("a", 2)}, "", "", "1/2 Pending"},
		{"one has another generation", []corev1.Pod{pod("a", "weir")}, []distribution.Confirmation{confirms("a", 1)}, "", "", "0/1 Pending"},
		{"a pod of that name was there before", []corev1.Pod{changed(pod("a", "weir"), func(p *corev1.Pod) { p.UID = "new" })}, []distribution.Confirmation{confirms("a", 2)}, "", "", "0/1 Pending"},
		{"one does not reach Redis", []corev1.Pod{pod("a", "weir")}, []distribution.Confirmation{cutOff}, "", "", "0/1 RedisUnreachable"},
		{"one is too old", []corev1.Pod{pod("a", "weir")}, []distribution.Confirmation{old}, "", "", "0/1 UnsupportedByEnforcer"},
		{"one has no sidecar", []corev1.Pod{pod("a", "app"), pod("b", "weir")}, []distribution.Confirmation{confirms("b", 2)}, "", "", "1/2 NotInjected"},
		{"a native sidecar counts", []corev1.Pod{changed(pod("a", "app"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "weir"}} })}, []distribution.Confirmation{confirms("a", 2)}, "", "", "1/1 Enforced"},
		{"no pod matches", []corev1.Pod{changed(pod("a", "weir"), func(p *corev1.Pod) { p.Labels = nil })}, nil, "", "", "0/0 NoMatchingWorkload"},
		{"a pod that is not ready does not count", []corev1.Pod{changed(pod("a", "app"), func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })}, nil, "", "", "0/0 NoMatchingWorkload"},
		{"a pod that goes does not count", []corev1.Pod{changed(pod("a", "app"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })}, nil, "", "", "0/0 NoMatchingWorkload"},
		{"a gateway enforces domains", nil, []distribution.Confirmation{door}, "", "front", "1/1 Enforced"},
		{"a gateway enforces nothing else", nil, []distribution.Confirmation{door}, "", "", "0/0 NoMatchingWorkload"},
		{"Disabled", []corev1.Pod{pod("a", "app")}, nil, v1alpha1.ModeDisabled, "", "0/1 Disabled"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			e := survey(storefront, 2, &v1alpha1.RateLimitPolicySpec{Selector: web, Domain: test.domain}, test.pods, test.confirmations)
			met, p := e.judge(test.mode)
			if got := e.counts().Summary + " " + p.reason; got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if want := p.reason == v1alpha1.ReasonEnforced || p.reason == v1alpha1.ReasonShadow; met != want {
				t.Errorf("met is %v with %s", met, p.reason)
			}
		})
	}
}

// stored is a policy as the API server has it.
func stored(spec string) *unstructured.Unstructured {
	u := newPolicy()
	if err := u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy", "metadata": {"namespace": "shop", "name": "storefront", "generation": 2}, "spec": %s}`, spec)); err != nil {
		panic(err)
	}
	return u
}

func backendObject(namespace, name, spec string) *unstructured.Unstructured {
	u := newBackend()
	if err := u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion": "weir.dev/v1alpha1", "kind": "RedisBackend", "metadata": {"namespace": %q, "name": %q}, "spec": %s}`, namespace, name, spec)); err != nil {
		panic(err)
	}
	return u
}

const (
	goodPolicy  = `{"selector": {}, "rules": [{"name": "r", "limit": 5, "window": "1m"}]}`
	elsewhere   = `{"selector": {}, "redisRef": {"name": "shared", "namespace": "infra"}, "rules": [{"name": "r", "limit": 5, "window": "1m"}]}`
	goodBackend = `{"mode": "Standalone", "addresses": ["redis:6379"]}`
	toGold      = `{"mode": "Standalone", "addresses": ["redis:6379"], "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {"tier": "gold"}}}}`
)

func TestResolveSaysWhatIsMissing(t *testing.T) {
	shared := policy.Name{Namespace: "infra", Name: "shared"}
	own := policy.Name{Namespace: "shop", Name: "default"}
	for _, test := range []struct {
		reason   string
		spec     string
		backends map[policy.Name]string
		tier     string
		standIn  policy.Name
		secrets  problem
		want     string
	}{
		{"its namespace's default", goodPolicy, map[policy.Name]string{own: goodBackend}, "", policy.Name{}, problem{}, "shop/default  "},
		{"no backend at all", goodPolicy, nil, "", policy.Name{}, problem{}, "shop/default  BackendNotFound"},
		{"a backend that stands in", goodPolicy, map[policy.Name]string{shared: `{"mode": "Standalone", "addresses": ["redis:6379"], "allowedNamespaces": {"from": "All"}}`}, "", shared, problem{}, "infra/shared  "},
		{"its own goes before what stands in", goodPolicy, map[policy.Name]string{own: goodBackend, shared: goodBackend}, "", shared, problem{}, "shop/default  "},
		{"another namespace's that does not permit it", elsewhere, map[policy.Name]string{shared: goodBackend}, "", policy.Name{}, problem{}, "infra/shared  BackendNotPermitted"},
		{"another namespace's that permits others", elsewhere, map[policy.Name]string{shared: toGold}, "lead", policy.Name{}, problem{}, "infra/shared  BackendNotPermitted"},
		{"another namespace's that permits it", elsewhere, map[policy.Name]string{shared: toGold}, "gold", policy.Name{}, problem{}, "infra/shared  "},
		{"a backend that is not valid", goodPolicy, map[policy.Name]string{own: `{"mode": "Moon"}`}, "", policy.Name{}, problem{}, "shop/default  BackendNotFound"},
		{"a backend without its Secret", goodPolicy, map[policy.Name]string{own: goodBackend}, "", policy.Name{}, problem{v1alpha1.ReasonSecretNotFound, "x"}, "shop/default  SecretNotFound"},
		{"a window that was stored before there were rules", `{"selector": {}, "rules": [{"name": "r", "limit": 5, "window": 60}]}`, map[policy.Name]string{own: goodBackend}, "", policy.Name{}, problem{}, "shop/default Invalid "},
		{"a field that is not known", `{"selector": {}, "moon": 1, "rules": [{"name": "r", "limit": 5, "window": "1m"}]}`, map[policy.Name]string{own: goodBackend}, "", policy.Name{}, problem{}, "shop/default Invalid "},
	} {
		t.Run(test.reason, func(t *testing.T) {
			r := resolve(stored(test.spec), surroundings{
				backend: func(name policy.Name) *unstructured.Unstructured {
					if spec, ok := test.backends[name]; ok {
						return backendObject(name.Namespace, name.Name, spec)
					}
					return nil
				},
				secrets: func(policy.Name) problem { return test.secrets }, labels: map[string]string{"tier": test.tier}, standIn: test.standIn,
			})
			if got := fmt.Sprint(r.backend, " ", r.accepted.reason, " ", r.resolved.reason); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestStatusIsWrittenOnlyWhenItSaysSomethingNew(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := reported{generation: 2, resolution: resolve(stored(goodPolicy), surroundings{
		backend: func(name policy.Name) *unstructured.Unstructured {
			return backendObject(name.Namespace, name.Name, goodBackend)
		},
		secrets: func(policy.Name) problem { return problem{} },
	}), now: now}
	r.enforced = enforcement{matched: 1, enforcing: 1}
	first := r.status(v1alpha1.RateLimitPolicyStatus{})
	r.now = now.Add(time.Hour)
	if diff := cmp.Diff(first, r.status(first)); diff != "" {
		t.Errorf("the same an hour later, -want +got:\n%s", diff)
	}
	r.shadow = true
	second := r.status(first)
	ready := meta.FindStatusCondition(second.Conditions, v1alpha1.ConditionReady)
	if second.Mode != v1alpha1.ModeShadow || ready.Reason != v1alpha1.ReasonShadow || !ready.LastTransitionTime.Time.Equal(now) {
		t.Errorf("with the kill switch: %s, %+v", second.Mode, ready)
	}
}

func TestEnforcedFallsAfterAWhile(t *testing.T) {
	status := func(generation int64, reason string, met bool) *v1alpha1.RateLimitPolicyStatus {
		return &v1alpha1.RateLimitPolicyStatus{ObservedGeneration: generation, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionEnforced, Status: conditionStatus(met), Reason: reason},
		}}
	}
	none := &v1alpha1.RateLimitPolicyStatus{}
	for _, test := range []struct {
		reason        string
		before, after *v1alpha1.RateLimitPolicyStatus
		want          time.Duration
	}{
		{"it rises at once", status(1, "Pending", false), status(1, "Enforced", true), 0},
		{"it stays", status(1, "Enforced", true), status(1, "Enforced", true), 0},
		{"it falls late", status(1, "Enforced", true), status(1, "Pending", false), lasting},
		{"it falls late for any cause", status(1, "Shadow", true), status(1, "RedisUnreachable", false), lasting},
		{"Disabled is no cause to wait for", status(1, "Enforced", true), status(1, "Disabled", false), 0},
		{"a new generation gets a moment", status(1, "Enforced", true), status(2, "Pending", false), arriving},
		{"a new policy, too", none, status(1, "Pending", false), arriving},
		{"a new generation that finds nobody", status(1, "Enforced", true), status(2, "NoMatchingWorkload", false), 0},
		{"one cause after another", status(1, "Pending", false), status(1, "RedisUnreachable", false), 0},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var s steady
			now := time.Now()
			if got := s.hold("u", test.before, test.after, now); got != test.want {
				t.Errorf("waits for %v, want %v", got, test.want)
			}
			if got := s.hold("u", test.before, test.after, now.Add(test.want)); got != 0 {
				t.Errorf("waits %v more", got)
			}
		})
	}
}
