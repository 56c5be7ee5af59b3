package limiter_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/policy"
)

// dawn begins a window of every length that divides a day.
const dawn = 20_000 * 24 * 60 * 60

// clock is a time that moves when it is told to.
type clock struct{ time.Time }

func newClock() *clock                   { return &clock{time.Unix(dawn, 0)} }
func (c *clock) now() time.Time          { return c.Time }
func (c *clock) set(since time.Duration) { c.Time = time.Unix(dawn, 0).Add(since) }

func (c *clock) store() *memstore.Store { return memstore.New(c.now, 0) }

// compile makes a policy of namespace shop from its spec.
func compile(t testing.TB, name, spec string) *policy.Policy {
	t.Helper()
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
	return compiled
}

// counted is a policy with the store of its counters.
type counted struct {
	name, spec string
	store      limiter.Store
}

// snapshot makes one backend of each store. Stores are told apart by identity.
func snapshot(t testing.TB, policies ...counted) *limiter.Snapshot {
	t.Helper()
	var compiled []*policy.Policy
	stores, backends := map[string]limiter.Store{}, map[limiter.Store]*limiter.Backend{}
	for _, p := range policies {
		compiled = append(compiled, compile(t, p.name, p.spec))
		stores[p.name] = p.store
	}
	s := &limiter.Snapshot{Set: policy.NewSet(compiled)}
	for _, p := range s.Set.Policies() {
		store := stores[p.Name.Name]
		if backends[store] == nil {
			backends[store] = &limiter.Backend{Name: policy.Name{Namespace: "shop", Name: "of-" + p.Name.Name}, Store: store, Budget: time.Hour}
		}
		s.Backends = append(s.Backends, backends[store])
	}
	return s
}

// start puts policies in force.
func start(t testing.TB, opts limiter.Options, policies ...counted) *limiter.Limiter {
	t.Helper()
	l := limiter.New(opts)
	l.Swap(snapshot(t, policies...))
	t.Cleanup(l.Close)
	return l
}

// result is a Decision in words.
type result struct {
	Outcome limiter.Outcome
	Cause   string
	Retry   int64
	Quotas  []string // rule remaining, "!" where it denied
}

func decide(l *limiter.Limiter, req policy.Request) result {
	var d limiter.Decision
	l.Decide(context.Background(), &req, &d)
	return resultOf(&d)
}

func resultOf(d *limiter.Decision) result {
	r := result{Outcome: d.Outcome, Retry: d.RetryAfter}
	if d.Cause != nil {
		r.Cause = d.Cause.Name
	}
	for _, q := range d.Quotas {
		text := fmt.Sprint(q.Rule.Name, " ", q.Remaining)
		if q.Over {
			text += "!"
		}
		r.Quotas = append(r.Quotas, text)
	}
	return r
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// get is a request of a user.
func get(user string) policy.Request {
	return policy.Request{Method: "GET", Host: "shop.example.com", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"),
		Header: map[string][]string{"X-User": {user}}}
}

// flaky is a store that fails at some kinds of operation.
type flaky struct {
	limiter.Store
	fails  map[limiter.Kind]error
	before func(limiter.Kind)

	mu    sync.Mutex
	kinds []limiter.Kind // that were asked for
}

func failing(s limiter.Store, kinds ...limiter.Kind) *flaky {
	f := &flaky{Store: s, fails: map[limiter.Kind]error{}}
	for _, kind := range kinds {
		f.fails[kind] = fmt.Errorf("test: %w", limiter.ErrTimeout)
	}
	return f
}

func (f *flaky) Do(ctx context.Context, batch []*limiter.Op) {
	for _, op := range batch {
		f.mu.Lock()
		f.kinds = append(f.kinds, op.Kind)
		f.mu.Unlock()
		if f.before != nil {
			f.before(op.Kind)
		}
		if op.Err = f.fails[op.Kind]; op.Err == nil {
			f.Store.Do(ctx, []*limiter.Op{op})
		}
	}
}

// admitted is what a counter of a minute holds.
func admitted(s limiter.Store, key string) int64 {
	op := &limiter.Op{Kind: limiter.Look, Checks: []limiter.Check{{Key: key, Limit: 1000, Window: 60, Cost: 1}}}
	s.Do(context.Background(), []*limiter.Op{op})
	return op.Checks[0].Admitted
}

// use charges a counter of a minute as another enforcer would.
func use(s limiter.Store, key string, cost uint64) {
	s.Do(context.Background(), []*limiter.Op{{Kind: limiter.Debit, Checks: []limiter.Check{{Key: key, Limit: 1000, Window: 60, Cost: cost}}}})
}

// diary is an observer that writes down all that it is told.
type diary struct {
	mu    sync.Mutex
	notes map[string]int
}

func (d *diary) Observe(*limiter.Snapshot) limiter.Recorder { return d }

func (d *diary) note(words ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notes == nil {
		d.notes = map[string]int{}
	}
	d.notes[fmt.Sprint(words...)]++
}

var verdicts = map[limiter.Verdict]string{limiter.Admissions: "admitted", limiter.Denials: "denied", limiter.ShadowDenials: "shadow", limiter.Failures: "failed"}

func (d *diary) Decided(r *policy.Rule, v limiter.Verdict) { d.note(r.Name, " ", verdicts[v]) }
func (d *diary) Exempt(p *policy.Policy)                   { d.note(p.Name.Name, " exempt") }
func (d *diary) Missing(r *policy.Rule)                    { d.note(r.Name, " missing") }
func (d *diary) Skipped(r *policy.Rule)                    { d.note(r.Name, " skipped") }
func (d *diary) ForwardedIgnored(p *policy.Policy)         { d.note(p.Name.Name, " ignored") }
func (d *diary) Failed(b *limiter.Backend, kind string)    { d.note(b.Name.Name, " ", kind) }
func (d *diary) FellBack(r *policy.Rule)                   { d.note(r.Name, " fell back") }
func (d *diary) RefundLost(b *limiter.Backend)             { d.note(b.Name.Name, " lost") }
func (d *diary) Refused(o limiter.Outcome)                 { d.note("refused ", o) }
