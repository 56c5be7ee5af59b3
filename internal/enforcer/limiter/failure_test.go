package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

func oneRule(rule, limit, options string) string {
	return `{selector: {}, ` + options + `rules: [{name: ` + rule + `, limit: ` + limit + `, window: 1m}]}`
}

const (
	allow    = "failureMode: Allow, "
	deny     = "failureMode: Deny, "
	fallback = "failureMode: LocalFallback, "
	shadow   = "mode: Shadow, "
)

// TestMixedOutcomes has a policy "good", whose store answers, and a policy "bad",
// whose store does not.
func TestMixedOutcomes(t *testing.T) {
	unavailable := result{limiter.Unavailable, "b", 1, nil}
	for _, c := range []struct {
		reason  string
		good    string
		bad     string
		fails   []limiter.Kind
		want    result
		charged int64
	}{
		{"a failed Allow rule is left out", oneRule("g", "5", ""), oneRule("b", "5", allow), []limiter.Kind{limiter.Look},
			result{Quotas: []string{"g 4"}}, 1},
		{"a failed Deny rule refuses, and nothing is charged", oneRule("g", "5", ""), oneRule("b", "5", deny), []limiter.Kind{limiter.Look},
			unavailable, 0},
		{"what was charged when a Deny rule failed is given back", oneRule("g", "5", ""), oneRule("b", "5", deny), []limiter.Kind{limiter.Charge},
			unavailable, 0},
		{"over outweighs unavailable", oneRule("g", "0", ""), oneRule("b", "5", deny), []limiter.Kind{limiter.Look},
			result{limiter.Denied, "g", 60, []string{"g 0!"}}, 0},
		{"over is over beside a failed Allow rule", oneRule("g", "0", ""), oneRule("b", "5", allow), []limiter.Kind{limiter.Look},
			result{limiter.Denied, "g", 60, []string{"g 0!"}}, 0},
		{"a failed Shadow rule refuses nothing", oneRule("g", "5", ""), oneRule("b", "5", deny+shadow), []limiter.Kind{limiter.Look},
			result{Quotas: []string{"g 4"}}, 1},
		{"a Shadow rule that is over refuses nothing", oneRule("g", "0", shadow), oneRule("b", "5", allow), []limiter.Kind{limiter.Look},
			result{}, 0},
		{"a rule falls back", oneRule("g", "5", ""), oneRule("b", "5", fallback), []limiter.Kind{limiter.Look},
			result{Quotas: []string{"b 4", "g 4"}}, 1},
		{"a fallback that is over denies", oneRule("g", "5", ""), oneRule("b", "0", fallback), []limiter.Kind{limiter.Look},
			result{limiter.Denied, "b", 60, []string{"b 0!", "g 5"}}, 0},
		{"a fallback that is over after the charge gives that back", oneRule("g", "5", ""), oneRule("b", "0", fallback), []limiter.Kind{limiter.Look, limiter.Charge},
			result{limiter.Denied, "b", 60, []string{"b 0!", "g 5"}}, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			now := newClock()
			store := now.store()
			l := start(t, limiter.Options{Fallback: now.store()},
				counted{"good", c.good, store}, counted{"bad", c.bad, failing(now.store(), c.fails...)})
			want(t, "decision", decide(l, get("bob")), c.want)
			l.Close() // what is given back has been
			want(t, "charged", admitted(store, "rl:{shop/good}:shop/good/g:60:"), c.charged)
		})
	}
}

func TestOneBackendFails(t *testing.T) {
	now := newClock()
	local, notes := now.store(), &diary{}
	l := start(t, limiter.Options{Fallback: local, Observer: notes, Share: func(r *policy.Rule) int64 { return (r.Limit + 1) / 2 }},
		counted{"p", oneRule("r", "3", fallback), failing(now.store(), limiter.Charge)})
	for i, expected := range []result{
		{Quotas: []string{"r 1"}}, {Quotas: []string{"r 0"}}, {limiter.Denied, "r", 60, []string{"r 0!"}},
	} {
		if !same(t, decide(l, get("bob")), expected) {
			t.Errorf("request %d differs", i+1)
		}
	}
	want(t, "notes", notes.notes, map[string]int{
		"of-p timeout": 3, "r failed": 3, "r fell back": 3, "r admitted": 2, "r denied": 1, "refused 2": 1})
}

func TestPoliciesOfOneBackendFailByTheirModes(t *testing.T) {
	now := newClock()
	bad := failing(now.store(), limiter.Charge)
	local := now.store()
	l := start(t, limiter.Options{Fallback: local},
		counted{"a", oneRule("allowing", "5", allow), bad}, counted{"b", oneRule("falling", "5", fallback), bad})
	want(t, "decision", decide(l, get("bob")), result{Quotas: []string{"falling 4"}})
	l.Swap(snapshot(t, counted{"b", oneRule("falling", "5", fallback), bad}, counted{"c", oneRule("denying", "5", deny), bad}))
	want(t, "decision", decide(l, get("bob")), result{limiter.Unavailable, "denying", 1, nil})
	want(t, "charged in memory", admitted(local, "rl:{shop/b}:shop/b/falling:60:"), int64(1))
}

func TestFallbackWithoutMemoryAllows(t *testing.T) {
	l := start(t, limiter.Options{}, counted{"p", oneRule("r", "0", fallback), failing(newClock().store(), limiter.Charge)})
	want(t, "decision", decide(l, get("bob")), result{})
}

func TestSeveralBackendsAreLookedAtFirst(t *testing.T) {
	for _, c := range []struct {
		reason, limitA, limitB string
		want                   result
		a, b                   []limiter.Kind
	}{
		{"both have room", "5", "5", result{Quotas: []string{"a 4", "b 4"}},
			[]limiter.Kind{limiter.Look, limiter.Charge}, []limiter.Kind{limiter.Look, limiter.Charge}},
		{"who denies keeps the attempt, the other is not charged", "5", "0", result{limiter.Denied, "b", 60, []string{"a 5", "b 0!"}},
			[]limiter.Kind{limiter.Look}, []limiter.Kind{limiter.Look, limiter.Charge}},
		{"both deny", "0", "0", result{limiter.Denied, "a", 60, []string{"a 0!", "b 0!"}},
			[]limiter.Kind{limiter.Look, limiter.Charge}, []limiter.Kind{limiter.Look, limiter.Charge}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			now := newClock()
			a, b := failing(now.store()), failing(now.store())
			l := start(t, limiter.Options{}, counted{"a", oneRule("a", c.limitA, ""), a}, counted{"b", oneRule("b", c.limitB, ""), b})
			want(t, "decision", decide(l, get("bob")), c.want)
			l.Close()
			want(t, "operations on a", a.kinds, c.a)
			want(t, "operations on b", b.kinds, c.b)
		})
	}
}

// TestAllOrNothingOverBackends sends four requests to three backends and reads
// their counters: attempts that one of them denied are charged nowhere.
func TestAllOrNothingOverBackends(t *testing.T) {
	for _, c := range []struct {
		reason string
		limits [3]string
		passed int64
	}{
		{"all have room", [3]string{"9", "9", "9"}, 4},
		{"the first is used up", [3]string{"2", "9", "9"}, 2},
		{"the last is used up", [3]string{"9", "9", "1"}, 1},
		{"two are used up, one after the other", [3]string{"9", "3", "2"}, 2},
		{"one never lets anything pass", [3]string{"9", "0", "9"}, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			now, names := newClock(), [3]string{"a", "b", "c"}
			var policies []counted
			for i, name := range names {
				policies = append(policies, counted{name, oneRule(name, c.limits[i], ""), now.store()})
			}
			l := start(t, limiter.Options{}, policies...)
			var passed int64
			for range 4 {
				if decide(l, get("bob")).Outcome == limiter.Allowed {
					passed++
				}
			}
			l.Close()
			want(t, "passed", passed, c.passed)
			for i, name := range names {
				want(t, "charged to "+name, admitted(policies[i].store, "rl:{shop/"+name+"}:shop/"+name+"/"+name+":60:"), c.passed)
			}
		})
	}
}

// TestBetweenLookAndCharge lets someone else take b's last unit in the gap.
func TestBetweenLookAndCharge(t *testing.T) {
	const keyA, keyB = "rl:{shop/a}:shop/a/a:60:", "rl:{shop/b}:shop/b/b:60:"
	for _, c := range []struct {
		reason  string
		fails   []limiter.Kind // at a
		charged int64
		lost    int
	}{
		{"the other's charge is given back", nil, 0, 0},
		{"a refund that fails is counted as lost", []limiter.Kind{limiter.Refund}, 1, 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			now, notes := newClock(), &diary{}
			a, b := failing(now.store(), c.fails...), failing(now.store())
			b.before = func(kind limiter.Kind) {
				if kind == limiter.Charge {
					use(b.Store, keyB, 1)
				}
			}
			l := start(t, limiter.Options{Observer: notes}, counted{"a", oneRule("a", "5", ""), a}, counted{"b", oneRule("b", "1", ""), b})
			want(t, "decision", decide(l, get("bob")), result{limiter.Denied, "b", 60, []string{"a 5", "b 0!"}})
			l.Close()
			want(t, "charged", admitted(a.Store, keyA), c.charged)
			want(t, "lost", notes.notes["of-a lost"], c.lost)
			want(t, "denied by b", notes.notes["b denied"], 1)
			want(t, "admitted by a", notes.notes["a admitted"], 0)
		})
	}
}

func TestShadowAttemptsAreNotGivenBack(t *testing.T) {
	now := newClock()
	a, b := failing(now.store()), failing(now.store(), limiter.Charge)
	l := start(t, limiter.Options{}, counted{"a", oneRule("a", "0", shadow), a}, counted{"b", oneRule("b", "5", deny), b})
	want(t, "decision", decide(l, get("bob")), result{limiter.Unavailable, "b", 1, nil})
	l.Close()
	want(t, "operations on a", a.kinds, []limiter.Kind{limiter.Look, limiter.Charge})
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		reason, spec string
		want         map[string]int
	}{
		{"admitted", `{selector: {}, rules: [{name: r, limit: 1, window: 1m}]}`, map[string]int{"r admitted": 1}},
		{"denied by one, not charged to the other", `{selector: {}, rules: [{name: r, limit: 0, window: 1m}, {name: s, limit: 9, window: 1m}]}`, map[string]int{"r denied": 1, "refused 2": 1}},
		{"over in Shadow", `{selector: {}, mode: Shadow, rules: [{name: r, limit: 0, window: 1m}]}`, map[string]int{"r shadow": 1}},
		{"exempt", `{selector: {}, exempt: [{name: x, match: {methods: [GET]}}], rules: [{name: r, limit: 0, window: 1m}]}`, map[string]int{"p exempt": 1}},
		{"a key that is missing and taken from the address", `{selector: {}, rules: [{name: r, limit: 1, window: 1m, key: [{type: Header, name: X-Id}]}]}`, map[string]int{"r missing": 1, "r admitted": 1}},
		{"a key that is missing and does without", `{selector: {}, rules: [{name: r, limit: 0, window: 1m, key: [{type: Header, name: X-Id, onMissing: Skip}]}]}`, map[string]int{"r skipped": 1}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			notes := &diary{}
			l := start(t, limiter.Options{Observer: notes}, counted{"p", c.spec, newClock().store()})
			decide(l, get("bob"))
			want(t, "notes", notes.notes, c.want)
		})
	}
}

// TestForwardedAddressesIgnored are told once for each policy.
func TestForwardedAddressesIgnored(t *testing.T) {
	notes := &diary{}
	l := start(t, limiter.Options{Observer: notes}, counted{"p", `{selector: {}, rules: [{name: r, limit: 9, window: 1m, key: [{type: ClientIP}]}, {name: s, limit: 9, window: 1h, key: [{type: ClientIP}]}]}`, newClock().store()})
	req := get("bob")
	req.Header["X-Forwarded-For"] = []string{"203.0.113.9"}
	decide(l, req)
	want(t, "ignored", notes.notes["p ignored"], 1)
}

func TestKindsOfFailure(t *testing.T) {
	named := map[string]error{
		"timeout": limiter.ErrTimeout, "unreachable": limiter.ErrUnreachable, "stale": limiter.ErrStale, "poisoned": limiter.ErrPoisoned,
		"out_of_memory": limiter.ErrOutOfMemory, "read_only": limiter.ErrReadOnly, "loading": limiter.ErrLoading, "denied": limiter.ErrDenied,
		"circuit_open": limiter.ErrCircuitOpen, "overloaded": limiter.ErrOverloaded, "protocol": limiter.ErrProtocol,
		limiter.KindOther: errors.New("an error of someone else"),
	}
	for kind, err := range named {
		want(t, err.Error(), limiter.KindOf(fmt.Errorf("ask: %w", err)), kind)
	}
	named[limiter.KindCanceled] = context.Canceled
	want(t, "kinds", slices.Sorted(slices.Values(limiter.FailureKinds())), slices.Sorted(maps.Keys(named)))
}

// TestCallersThatGoAway say nothing about the store that they waited for.
func TestCallersThatGoAway(t *testing.T) {
	notes := &diary{}
	l := start(t, limiter.Options{Observer: notes}, counted{"p", oneRule("r", "1", ""), failing(newClock().store(), limiter.Charge)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := get("bob")
	var d limiter.Decision
	l.Decide(ctx, &req, &d)
	want(t, "notes of a caller that went away", notes.notes, map[string]int{"of-p canceled": 1, "r failed": 1})
}
