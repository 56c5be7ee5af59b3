package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	redistest "github.com/weir-dev/weir/test/redis"
)

const (
	guide     = "../../../docs/guide/redis.md"
	reference = "../../../docs/reference/redis-faults.md"
)

// documented are the words of the guide's command for a user, with a password.
func documented(t *testing.T, name string, more ...string) []any {
	t.Helper()
	return guideCommand(t, "ACL SETUSER "+name+" reset on >PASSWORD ~", more)
}

// documentedForSentinels is the same for the user of Sentinels.
func documentedForSentinels(t *testing.T, more ...string) []any {
	t.Helper()
	return guideCommand(t, "ACL SETUSER weir reset on >PASSWORD resetchannels ", more)
}

func guideCommand(t *testing.T, start string, more []string) []any {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(strings.TrimSpace(line), start) {
			continue
		}
		var words []any
		for _, word := range append(strings.Fields(line), more...) {
			words = append(words, strings.Replace(word, "PASSWORD", canary, 1))
		}
		return words
	}
	t.Fatalf("the guide has no command %s…", start)
	return nil
}

// prefixed gives every key a start, so that a suite's counters are a namespace's.
type prefixed struct {
	limiter.Store
	start string
}

func (p prefixed) Do(ctx context.Context, batch []*limiter.Op) {
	each := func(change func(*limiter.Check)) {
		for _, op := range batch {
			for i := range op.Checks {
				change(&op.Checks[i])
			}
		}
	}
	each(func(c *limiter.Check) { c.Key = p.start + c.Key })
	p.Store.Do(ctx, batch)
	each(func(c *limiter.Check) { c.Key = strings.TrimPrefix(c.Key, p.start) })
}

func storeAs(t *testing.T, server *redistest.Server, name string) *Store {
	t.Helper()
	cfg := as(server.Addr(), name, canary)
	cfg.Timeout = 20 * time.Second
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestDocumentedUsersAreEnough runs the suite of all stores as them. The server
// keeps a book of refused commands: there are none, not even of those that a
// client sends unasked.
func TestDocumentedUsersAreEnough(t *testing.T) {
	for _, name := range []string{"weir", "weir-shop"} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			order(t, server, documented(t, name)...)
			const start = "rl:{caller}:shop/"
			storetest.Run(t, func(t *testing.T) storetest.Harness {
				server.Client().FlushAll(t.Context())
				server.Client().ScriptFlush(t.Context())
				return storetest.Harness{Store: prefixed{storeAs(t, server, name), start}, Delete: func(key string) {
					server.Client().Del(t.Context(), windowKey(start+key))
				}}
			})
			mustFind(t, as(server.Addr(), name, canary), shop, "", "")
			mustRefuseNothing(t, server)
		})
	}
}

// mustRefuseNothing reads a server's book of refusals. INFO is not needed, and
// asked nevertheless.
func mustRefuseNothing(t *testing.T, server *redistest.Server) {
	t.Helper()
	refused, err := server.Client().Do(context.Background(), "ACL", "LOG").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range refused {
		if what := fmt.Sprint(entry); !strings.Contains(what, "object info") {
			t.Errorf("%s has refused %v", server.Addr(), entry)
		}
	}
}

// TestNoDocumentedRightIsIdle takes each away.
func TestNoDocumentedRightIsIdle(t *testing.T) {
	server := redistest.Start(t)
	for _, word := range documented(t, "weir") {
		rule := word.(string)
		if rule[0] != '+' && rule[0] != '~' {
			continue
		}
		t.Run("without "+rule, func(t *testing.T) {
			less, want := "-"+rule[1:], rule
			if rule[0] == '~' {
				less, want = "resetkeys", "~rl:{*}:shop/*"
			}
			order(t, server, documented(t, "weir", less)...)
			r := mustFind(t, as(server.Addr(), "weir", canary), shop, FaultMissingRights, "("+want+")")
			if !slices.Equal(r.Missing, []string{want}) {
				t.Errorf("it misses %v", r.Missing)
			}
		})
	}
}

func TestNamespacesUserReachesNoOtherCounters(t *testing.T) {
	server := redistest.Start(t)
	order(t, server, documented(t, "weir-shop")...)
	store := storeAs(t, server, "weir-shop")
	for reason, key := range map[string]string{
		"another namespace":                   "rl:{caller}:pay/p/r:366:",
		"a namespace that begins alike":       "rl:{caller}:shopping/p/r:366:",
		"a namespace that ends alike":         "rl:{caller}:myshop/p/r:366:",
		"a policy called like it":             "rl:{caller}:pay/shop/r:366:",
		"a rule without a key":                "rl:{pay/p}:pay/p/r:366:",
		"a caller who sends the namespace":    "rl:{%7D%3Ashop%2F}:pay/p/r:366:",
		"another cluster under its prefix":    "prod:{caller}:shop/p/r:366:",
		"what is no counter but begins alike": "rl:",
	} {
		t.Run(reason, func(t *testing.T) {
			order(t, server, "SET", windowKey(key), "7")
			for _, kind := range []limiter.Kind{limiter.Charge, limiter.Look, limiter.Refund, limiter.Debit} {
				op := &limiter.Op{Kind: kind, Checks: []limiter.Check{storetest.Check(key, 10)}}
				store.Do(t.Context(), []*limiter.Op{op})
				if !errors.Is(op.Err, limiter.ErrDenied) {
					t.Errorf("kind %d: %v", kind, op.Err)
				}
			}
			if n := server.Client().Get(t.Context(), windowKey(key)).Val(); n != "7" {
				t.Errorf("the counter is %s", n)
			}
		})
	}
}

// TestReferenceListsEveryFault keeps the page as the table says.
func TestReferenceListsEveryFault(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, fault := range slices.Sorted(maps.Keys(faults)) {
		words := faults[fault]
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", fault, words.reason, fmt.Sprintf(words.wrong, "…"), words.mend)
	}
	if _, table, _ := strings.Cut(string(text), "|---|---|---|---|\n"); table != rows.String() {
		t.Errorf("the table of %s should be\n%s", reference, rows.String())
	}
}
