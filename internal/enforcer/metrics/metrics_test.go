package metrics

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/policy"
)

// series are all values of a registry, by name and labels.
func series(t testing.TB, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, pair := range m.GetLabel() {
				labels = append(labels, pair.GetName()+"="+pair.GetValue())
			}
			all[strings.TrimPrefix(family.GetName(), "weir_")+"{"+strings.Join(labels, ",")+"}"] =
				m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// counted are the series that are not zero.
func counted(all map[string]float64) map[string]float64 {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(_ string, value float64) bool { return value == 0 })
	return some
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// snapshot holds the policies, whose specs are by name, in one backend.
func snapshot(t testing.TB, backend *limiter.Backend, specs map[string]string) *limiter.Snapshot {
	t.Helper()
	var all []*policy.Policy
	for name, spec := range specs {
		data, err := yaml.YAMLToJSON([]byte("metadata: {namespace: shop, name: " + name + "}\nspec: " + spec))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.DecodePolicy(data)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := policy.Compile(p, policy.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, compiled)
	}
	s := &limiter.Snapshot{Set: policy.NewSet(all)}
	for range all {
		s.Backends = append(s.Backends, backend)
	}
	return s
}

func backendOf(s limiter.Store) *limiter.Backend {
	return &limiter.Backend{Name: policy.Name{Namespace: "shop", Name: "redis"}, Store: s, Budget: time.Hour}
}

func memory() *memstore.Store {
	return memstore.New(func() time.Time { return time.Unix(1_728_000_000, 0) }, 0)
}

// away is a store that never answers.
type away struct{}

func (away) Do(_ context.Context, batch []*limiter.Op) {
	for _, op := range batch {
		op.Err = limiter.ErrTimeout
	}
}

func begin(t testing.TB, s *limiter.Snapshot, fallback limiter.Store) (*limiter.Limiter, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	l := limiter.New(limiter.Options{Observer: New(registry), Fallback: fallback})
	l.Swap(s)
	t.Cleanup(l.Close)
	return l, registry
}

func decide(l *limiter.Limiter, header map[string][]string) {
	var d limiter.Decision
	l.Decide(context.Background(), &policy.Request{Method: "GET", Path: "/", Header: header}, &d)
}

func TestDecisionsAreCountedByOutcome(t *testing.T) {
	for _, c := range []struct {
		reason, spec string
		store        limiter.Store
		want         map[string]float64 // after three requests
	}{
		{"one allowed and two denied", `{selector: {}, rules: [{name: r, limit: 1, window: 1m}]}`, memory(), map[string]float64{
			"decisions_total{outcome=allowed,policy=shop/p,rule=r}": 1,
			"decisions_total{outcome=denied,policy=shop/p,rule=r}":  2,
			"refused_requests_total{reason=over_limit}":             2,
		}},
		{"Shadow", `{selector: {}, mode: Shadow, rules: [{name: r, limit: 1, window: 1m}]}`, memory(), map[string]float64{
			"decisions_total{outcome=allowed,policy=shop/p,rule=r}":       1,
			"decisions_total{outcome=shadow_denied,policy=shop/p,rule=r}": 2,
		}},
		{"exempt", `{selector: {}, exempt: [{name: x, match: {methods: [GET]}}], rules: [{name: r, limit: 1, window: 1m}]}`, memory(), map[string]float64{
			"decisions_total{outcome=exempt,policy=shop/p,rule=}": 3,
		}},
		{"a missing key", `{selector: {}, rules: [{name: r, limit: 1, window: 1m, key: [{type: Header, name: X-Id, onMissing: Deny}]}]}`, memory(), map[string]float64{
			"decisions_total{outcome=denied,policy=shop/p,rule=r}": 3,
			"missing_keys_total{policy=shop/p,rule=r}":             3,
			"refused_requests_total{reason=key_missing}":           3,
		}},
		{"a missing key that leaves the request out", `{selector: {}, rules: [{name: r, limit: 1, window: 1m, key: [{type: Header, name: X-Id, onMissing: Skip}]}]}`, memory(), map[string]float64{
			"decisions_total{outcome=skipped,policy=shop/p,rule=r}": 3,
			"missing_keys_total{policy=shop/p,rule=r}":              3,
		}},
		{"a store that is away", `{selector: {}, failureMode: Deny, rules: [{name: r, limit: 1, window: 1m}]}`, away{}, map[string]float64{
			"decisions_total{outcome=error,policy=shop/p,rule=r}":   3,
			"store_failures_total{backend=shop/redis,kind=timeout}": 3,
			"refused_requests_total{reason=store_unavailable}":      3,
		}},
		{"a fallback", `{selector: {}, failureMode: LocalFallback, rules: [{name: r, limit: 2, window: 1m}]}`, away{}, map[string]float64{
			"decisions_total{outcome=error,policy=shop/p,rule=r}":   3,
			"decisions_total{outcome=allowed,policy=shop/p,rule=r}": 2,
			"decisions_total{outcome=denied,policy=shop/p,rule=r}":  1,
			"fallback_decisions_total{policy=shop/p,rule=r}":        3,
			"store_failures_total{backend=shop/redis,kind=timeout}": 3,
			"refused_requests_total{reason=over_limit}":             1,
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			l, registry := begin(t, snapshot(t, backendOf(c.store), map[string]string{"p": c.spec}), memory())
			for range 3 {
				decide(l, nil)
			}
			c.want["policies{}"] = 1
			want(t, "series", counted(series(t, registry)), c.want)
		})
	}
}

// TestSeriesDoNotGrowWithCallers has very many of them, every second of whom asks
// for more than the limit.
func TestSeriesDoNotGrowWithCallers(t *testing.T) {
	store := memory()
	l, registry := begin(t, snapshot(t, backendOf(store), map[string]string{
		"p": `{selector: {}, rules: [{name: r, limit: 1, window: 1m, key: [{type: Header, name: X-User}]}]}`}), nil)
	before := slices.Sorted(maps.Keys(series(t, registry)))
	var d limiter.Decision
	for i := range manyCallers {
		user := []string{"caller-" + strconv.Itoa(i)}
		l.Decide(t.Context(), &policy.Request{Method: "GET", Path: "/", Header: map[string][]string{"X-User": user}, Cost: 1 + uint64(i%2)}, &d)
	}
	all := series(t, registry)
	after := slices.Sorted(maps.Keys(all))
	want(t, "series", after, before)
	want(t, "allowed", all["decisions_total{outcome=allowed,policy=shop/p,rule=r}"], manyCallers/2.)
	want(t, "denied", all["decisions_total{outcome=denied,policy=shop/p,rule=r}"], manyCallers/2.)
	if text := strings.Join(after, "\n"); strings.Contains(text, "caller") {
		t.Errorf("a caller's text is in a label:\n%s", text)
	}
	if store.Len() > memstore.DefaultSize {
		t.Errorf("%d counters in memory, want %d at most", store.Len(), memstore.DefaultSize)
	}
}

func TestSeriesOfWhatIsGoneDisappear(t *testing.T) {
	const a, b = `{selector: {}, rules: [{name: r, limit: 1, window: 1m}, {name: s, limit: 1, window: 1m}]}`, `{selector: {}, rules: [{name: r, limit: 1, window: 1m}]}`
	for _, c := range []struct {
		reason string
		next   map[string]string
		gone   []string // no series holds it
		stay   []string
	}{
		{"a policy", map[string]string{"b": b}, []string{"policy=shop/a"}, []string{"policy=shop/b", "backend=shop/redis"}},
		{"a rule", map[string]string{"a": b, "b": b}, []string{"rule=s"}, []string{"policy=shop/a,rule=r", "policy=shop/a,rule=}"}},
		{"a policy that is disabled", map[string]string{"a": a, "b": strings.Replace(b, "{", "{mode: Disabled, ", 1)}, []string{"policy=shop/b"}, []string{"policy=shop/a"}},
		{"everything", nil, []string{"policy=", "backend="}, []string{"refused_requests_total{reason=over_limit}", "policies{}"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			m := New(registry)
			l := limiter.New(limiter.Options{Observer: m})
			backend := backendOf(memory())
			m.Backend(backend.Name).Called(time.Millisecond, nil)
			m.Backend(backend.Name).Repaired(1)
			first := snapshot(t, backend, map[string]string{"a": a, "b": b})
			l.Swap(first)
			late := m.newRecorder(first)
			decide(l, nil)
			l.Swap(snapshot(t, backend, c.next))
			late.Decided(first.Set.Rules()[0], limiter.Denials) // a decision that ends late
			decide(l, nil)
			text := strings.Join(slices.Sorted(maps.Keys(series(t, registry))), "\n")
			for _, gone := range c.gone {
				if strings.Contains(text, gone) {
					t.Errorf("%s is there still:\n%s", gone, text)
				}
			}
			for _, stay := range c.stay {
				if !strings.Contains(text, stay) {
					t.Errorf("%s is gone:\n%s", stay, text)
				}
			}
		})
	}
}

func TestCountsOutliveASwap(t *testing.T) {
	s := snapshot(t, backendOf(memory()), map[string]string{"p": `{selector: {}, rules: [{name: r, limit: 9, window: 1m}]}`})
	l, registry := begin(t, s, nil)
	decide(l, nil)
	l.Swap(s)
	decide(l, nil)
	want(t, "allowed", series(t, registry)["decisions_total{outcome=allowed,policy=shop/p,rule=r}"], 2.0)
}

func TestReloadsBackendsAndTheProxyAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Reloaded(true)
	m.Reloaded(false)
	b := m.Backend(policy.Name{Namespace: "shop", Name: "redis"})
	b.Called(time.Millisecond, nil)
	b.Repaired(2)
	p := m.Proxy()
	p.InFlight(+1)
	p.InFlight(+1)
	p.InFlight(-1)
	p.Failed(proxy.Broken)
	backend := backendOf(memory())
	m.Observe(snapshot(t, backend, map[string]string{"p": `{selector: {}, rules: [{name: r, limit: 9, window: 1m}]}`})).RefundLost(backend)
	want(t, "series", counted(series(t, registry)), map[string]float64{
		"policies{}":                                      1,
		"proxy_requests_in_flight{}":                      1,
		"proxy_failures_total{kind=broken}":               1,
		"policy_reloads_total{result=success}":            1,
		"policy_reloads_total{result=failure}":            1,
		"redis_call_duration_seconds{backend=shop/redis}": 1,
		"counter_repairs_total{backend=shop/redis}":       2,
		"lost_refunds_total{backend=shop/redis}":          1,
	})
}

func TestDecisionsTouchNoLabels(t *testing.T) {
	s := snapshot(t, backendOf(memory()), map[string]string{"p": `{selector: {}, rules: [{name: r, limit: 9, window: 1m}]}`})
	r, rule := New(prometheus.NewRegistry()).Observe(s), s.Set.Rules()[0]
	if n := testing.AllocsPerRun(100, func() { r.Decided(rule, limiter.Admissions); r.Refused(limiter.Denied) }); n > 0 {
		t.Errorf("counting a decision allocates %v times", n)
	}
}
