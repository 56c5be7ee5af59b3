package limiter_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

const keyUser = ", key: [{type: Header, name: X-User}]"

func TestDecisionsInARow(t *testing.T) {
	for _, c := range []struct {
		reason, spec string
		want         []result
	}{
		{"three pass and remaining never is negative", `{selector: {}, rules: [{name: r, limit: 3, window: 1m` + keyUser + `}]}`, []result{
			{limiter.Allowed, "", 0, []string{"r 2"}},
			{limiter.Allowed, "", 0, []string{"r 1"}},
			{limiter.Allowed, "", 0, []string{"r 0"}},
			{limiter.Denied, "r", 60, []string{"r 0!"}},
			{limiter.Denied, "r", 60, []string{"r 0!"}},
		}},
		{"limit 0 denies from the first request", `{selector: {}, rules: [{name: r, limit: 0, window: 1m}]}`, []result{
			{limiter.Denied, "r", 60, []string{"r 0!"}},
		}},
		{"what one rule denies is not charged to the other", `{selector: {}, rules: [{name: wide, limit: 5, window: 1h}, {name: tight, limit: 1, window: 1m}]}`, []result{
			{limiter.Allowed, "", 0, []string{"wide 4", "tight 0"}},
			{limiter.Denied, "tight", 60, []string{"wide 4", "tight 0!"}},
			{limiter.Denied, "tight", 60, []string{"wide 4", "tight 0!"}},
		}},
		{"the cause is the rule with the longest wait", `{selector: {}, rules: [{name: day, limit: 1, window: 24h}, {name: minute, limit: 1, window: 1m}]}`, []result{
			{limiter.Allowed, "", 0, []string{"day 0", "minute 0"}},
			{limiter.Denied, "day", 86400, []string{"day 0!", "minute 0!"}},
		}},
		{"Shadow neither denies nor shows", `{selector: {}, mode: Shadow, rules: [{name: r, limit: 1, window: 1m}]}`, []result{
			{limiter.Allowed, "", 0, nil}, {limiter.Allowed, "", 0, nil},
		}},
		{"Disabled does nothing", `{selector: {}, mode: Disabled, rules: [{name: r, limit: 0, window: 1m}]}`, []result{
			{limiter.Allowed, "", 0, nil},
		}},
		{"an exempt request is not counted", `{selector: {}, exempt: [{name: x, match: {methods: [GET]}}], rules: [{name: r, limit: 0, window: 1m}]}`, []result{
			{limiter.Allowed, "", 0, nil},
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			l := start(t, limiter.Options{}, counted{"p", c.spec, newClock().store()})
			for i, step := range c.want {
				if got := decide(l, get("bob")); !same(t, got, step) {
					t.Errorf("request %d differs", i+1)
				}
			}
		})
	}
}

func same(t *testing.T, got, expected result) bool {
	t.Helper()
	before := t.Failed()
	want(t, "decision", got, expected)
	return before || !t.Failed()
}

func TestEmptyLimiterAllows(t *testing.T) {
	l := limiter.New(limiter.Options{})
	want(t, "decision", decide(l, get("bob")), result{})
}

func TestMissingKeyIsChargedNowhere(t *testing.T) {
	const rules = `rules: [{name: all, limit: 5, window: 1m}, {name: user, limit: 5, window: 1m, key: [{type: Header, name: X-Id, onMissing: Deny}]}]}`
	for _, c := range []struct {
		reason, spec string
		want         result
		charged      int64
		notes        map[string]int
	}{
		{"enforced", `{selector: {}, ` + rules, result{Outcome: limiter.KeyMissing, Cause: "user"}, 0,
			map[string]int{"user missing": 1, "user denied": 1, "refused 3": 1}},
		{"Shadow counts the rest", `{selector: {}, mode: Shadow, ` + rules, result{}, 1,
			map[string]int{"user missing": 1, "user shadow": 1, "all admitted": 1}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			store, notes := newClock().store(), &diary{}
			l := start(t, limiter.Options{Observer: notes}, counted{"p", c.spec, store})
			want(t, "decision", decide(l, get("bob")), c.want)
			want(t, "charged", admitted(store, "rl:{shop/p}:shop/p/all:60:"), c.charged)
			want(t, "notes", notes.notes, c.notes)
		})
	}
}

func TestCountersMetTwiceAreChargedOnce(t *testing.T) {
	descriptor := func(user string) policy.Descriptor {
		return policy.Descriptor{Entries: []policy.DescriptorEntry{{Key: "user", Value: user}}}
	}
	for _, c := range []struct {
		reason string
		users  []policy.Descriptor
		quotas []string
	}{
		{"the same user twice", []policy.Descriptor{descriptor("a"), descriptor("a")}, []string{"r 7"}},
		{"two users", []policy.Descriptor{descriptor("a"), descriptor("b")}, []string{"r 7", "r 7"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			l := start(t, limiter.Options{}, counted{"p", `{domain: d, rules: [{name: r, limit: 10, window: 1m, match: {descriptor: [{key: user}]}, key: [{type: Descriptor, name: user}]}]}`, newClock().store()})
			want(t, "decision", decide(l, policy.Request{Descriptors: c.users, Cost: 3}), result{Quotas: c.quotas})
		})
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for _, c := range []struct {
		reason string
		at     time.Duration
		want   int64
	}{
		{"at the beginning", 0, 5},
		{"half a second later", 500 * time.Millisecond, 5},
		{"a second before the end", 4 * time.Second, 1},
		{"a bit before the end", 4950 * time.Millisecond, 1},
		{"5 ms before the end", 4995 * time.Millisecond, 1},
		{"a nanosecond before the end", 5*time.Second - 1, 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			now := newClock()
			l := start(t, limiter.Options{}, counted{"p", `{selector: {}, rules: [{name: r, limit: 1, window: 5s}]}`, now.store()})
			now.set(c.at)
			want(t, "first", decide(l, get("bob")), result{Quotas: []string{"r 0"}})
			want(t, "second", decide(l, get("bob")), result{limiter.Denied, "r", c.want, []string{"r 0!"}})
			now.set(c.at + time.Duration(c.want)*time.Second)
			want(t, "after the wait", decide(l, get("bob")), result{Quotas: []string{"r 0"}})
		})
	}
}

// TestTwoWindowsHoldAtOnce is an account with so many a second and a day, by tier.
func TestTwoWindowsHoldAtOnce(t *testing.T) {
	const spec = `{selector: {}, rules: [
  {name: free-second, limit: 10, window: 1s, match: {headers: [{name: X-Tier, type: Exact, value: free}]}` + keyUser + `},
  {name: free-day, limit: 250, window: 24h, match: {headers: [{name: X-Tier, type: Exact, value: free}]}` + keyUser + `},
  {name: paid-second, limit: 20, window: 1s, match: {headers: [{name: X-Tier, type: Exact, value: paid}]}` + keyUser + `},
  {name: paid-day, limit: 1000, window: 24h, match: {headers: [{name: X-Tier, type: Exact, value: paid}]}` + keyUser + `}]}`
	for _, c := range []struct {
		tier             string
		perSecond, daily int
	}{{"free", 10, 250}, {"paid", 20, 1000}} {
		t.Run(c.tier, func(t *testing.T) {
			now := newClock()
			l := start(t, limiter.Options{}, counted{"p", spec, now.store()})
			req := get("bob")
			req.Header["X-Tier"] = []string{c.tier}
			total := 0
			for second := range 60 {
				now.set(time.Duration(second) * time.Second)
				passed := 0
				for range c.perSecond + 5 {
					if decide(l, req).Outcome == limiter.Allowed {
						passed++
					}
				}
				if most := min(c.perSecond, c.daily-total); passed != most {
					t.Fatalf("second %d: %d pass, want %d", second, passed, most)
				}
				total += passed
			}
			want(t, "total", total, c.daily)
			if got := decide(l, req); got.Cause != c.tier+"-day" || got.Retry != 86400-59 {
				t.Errorf("refused by %s for %d s, want the day's rest", got.Cause, got.Retry)
			}
			now.set(24 * time.Hour)
			want(t, "the next day", decide(l, req).Outcome, limiter.Allowed)
		})
	}
}

func TestSwapKeepsCounts(t *testing.T) {
	store := newClock().store()
	spec := func(limit string) counted {
		return counted{"p", `{selector: {}, rules: [{name: r, limit: ` + limit + `, window: 1m}]}`, store}
	}
	l := start(t, limiter.Options{}, spec("2"))
	for range 3 {
		decide(l, get("bob"))
	}
	for _, c := range []struct {
		reason   string
		policies []counted
		want     result
	}{
		{"a raised limit admits the difference", []counted{spec("3")}, result{Quotas: []string{"r 0"}}},
		{"a lowered one denies", []counted{spec("1")}, result{limiter.Denied, "r", 60, []string{"r 0!"}}},
		{"no policy, no limit", nil, result{}},
	} {
		l.Swap(snapshot(t, c.policies...))
		want(t, c.reason, decide(l, get("bob")), c.want)
	}
}

func TestReusedDecisionsForget(t *testing.T) {
	l := start(t, limiter.Options{}, counted{"p", `{selector: {}, rules: [{name: r, limit: 1, window: 1m` + keyUser + `}]}`, newClock().store()})
	var d limiter.Decision
	bob, eve := get("bob"), get("eve")
	for range 2 {
		l.Decide(context.Background(), &bob, &d)
	}
	l.Decide(context.Background(), &eve, &d)
	want(t, "decision after a denial", resultOf(&d), result{Quotas: []string{"r 0"}})
	d.Reset()
	want(t, "decision after Reset", resultOf(&d), result{})
}

func TestDecisionsAllocateLittle(t *testing.T) {
	l := start(t, limiter.Options{}, counted{"p", `{selector: {}, rules: [{name: r, limit: 1000000, window: 1m` + keyUser + `}]}`, newClock().store()})
	var d limiter.Decision
	req := get("bob")
	// The counter's key, and the context with the budget.
	if n := testing.AllocsPerRun(100, func() { l.Decide(context.Background(), &req, &d) }); n > 2 {
		t.Errorf("a decision allocates %v times, want 2 at most", n)
	}
}
