package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/enforcer/denials"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// Window is the length of Limiter's window in seconds: so long that it hardly
// ever turns during a benchmark.
const Window = policy.MaxWindow

// NeverReached is a limit for benchmarks in which nobody is denied.
const NeverReached = 1_000_000_000

// Compile makes a policy of a spec in YAML.
func Compile(tb testing.TB, name, spec string) *policy.Policy {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte("metadata: {namespace: shop, name: " + name + "}\nspec:\n" + spec))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := policy.DecodePolicy(data)
	if err != nil {
		tb.Fatal(err)
	}
	compiled, err := policy.Compile(p, policy.Defaults{})
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

// Limiter allows each user so many requests in Window. A store that fails makes
// it refuse, and tb fail, so that no failure passes for a decision.
func Limiter(tb testing.TB, store limiter.Store, limit int64) *limiter.Limiter {
	tb.Helper()
	spec := fmt.Sprintf(`
  selector: {}
  failureMode: Deny
  rules:
  - {name: per-user, limit: %d, window: %ds, key: [{type: Header, name: X-User-Id}]}
`, limit, Window)
	l := limiter.New(limiter.Options{Observer: &failures{tb: tb}})
	l.Swap(&limiter.Snapshot{
		Set:      policy.NewSet([]*policy.Policy{Compile(tb, "bench", spec)}),
		Backends: []*limiter.Backend{{Store: store, Budget: patience}},
	})
	tb.Cleanup(l.Close)
	return l
}

// failures fail a benchmark with what kept the first decision from being made.
type failures struct {
	tb   testing.TB
	once sync.Once
}

var _ limiter.Recorder = (*failures)(nil)

// Observe implements limiter.Observer.
func (f *failures) Observe(*limiter.Snapshot) limiter.Recorder { return f }

// Failed implements limiter.Recorder.
func (f *failures) Failed(_ *limiter.Backend, kind string) {
	f.once.Do(func() { f.tb.Errorf("the store could not decide: %s", kind) })
}

// What is left of limiter.Recorder does not tell of failures.

func (*failures) Decided(*policy.Rule, limiter.Verdict) {}
func (*failures) Exempt(*policy.Policy)                 {}
func (*failures) Missing(*policy.Rule)                  {}
func (*failures) Skipped(*policy.Rule)                  {}
func (*failures) ForwardedIgnored(*policy.Policy)       {}
func (*failures) FellBack(*policy.Rule)                 {}
func (*failures) RefundLost(*limiter.Backend)           {}
func (*failures) Refused(limiter.Outcome)               {}

// Key is the name of the counter that Limiter keeps for a user now.
func Key(user string) string {
	return "rl:{" + user + "}:shop/bench/per-user:" + strconv.Itoa(Window) + ":" + strconv.FormatInt(time.Now().Unix()/Window, 10)
}

// Store keeps counters in a Redis and remembers denials, as an enforcer does.
func Store(tb testing.TB, address string) limiter.Store {
	tb.Helper()
	store := denials.New(Asking(tb, address), denials.Options{Budget: patience})
	tb.Cleanup(store.Close)
	return store
}

// patience is how long a call may take: what is slow shall count as slow, and not
// fail.
const patience = 10 * time.Second

// Asking is Store without a memory: it asks Redis about every request.
func Asking(tb testing.TB, address string) limiter.Store {
	tb.Helper()
	store, err := redisstore.New(redisstore.Config{Addresses: []string{address}, Timeout: patience, DialTimeout: patience})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// Users are names of so many users.
func Users(n int) []string {
	users := make([]string, n)
	for i := range users {
		users[i] = "user_" + strconv.Itoa(i)
	}
	return users
}

// Decisions are callers that each let the limiter decide requests of users at
// random, and expect one outcome.
func Decisions(l *limiter.Limiter, users []string, want limiter.Outcome) Caller {
	return func(int) func() error {
		decide := Decide(l, want)
		return func() error { return decide(users[rand.IntN(len(users))]) }
	}
}

// Decide returns what lets the limiter decide one request of a user, and expects
// one outcome. What it returns is for one goroutine.
func Decide(l *limiter.Limiter, want limiter.Outcome) func(user string) error {
	var d limiter.Decision
	name := []string{""}
	req := &policy.Request{
		Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"),
		Header: map[string][]string{"X-User-Id": name},
	}
	return func(user string) error {
		name[0] = user
		l.Decide(context.Background(), req, &d)
		if d.Outcome != want {
			return fmt.Errorf("decision for %s: outcome %d, want %d", user, d.Outcome, want)
		}
		return nil
	}
}
