package cases

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCallersWithoutTheHeaderTheyAreCountedBy(t *testing.T) {
	t.Parallel()
	rule := func(name, onMissing string) string {
		return "  - {name: " + name + ", limit: 2, window: 366d, match: {paths: [{type: Exact, value: /" + name + "}]}, key: [{type: Header, name: X-Tenant" + onMissing + "}]}\n"
	}
	s := open(t, setup{}, policy("p", "  rules:\n"+rule("default", "")+rule("address", ", onMissing: ClientIP")+
		rule("skip", ", onMissing: Skip")+rule("deny", ", onMissing: Deny")+rule("shared", ", onMissing: Shared")))
	const metric = `weir_missing_keys_total{policy="shop/p",rule="default"}`
	for i, fields := range [][]string{
		nil, {"X-Tenant", ""}, {"X-Tenant", " \t "}, {"X-Tenant", "a", "X-Tenant", "b"},
	} {
		how, one, another := fmt.Sprintf("%q", fields), fmt.Sprint("127.0.1.", i), fmt.Sprint("127.0.2.", i)
		shared, before := times(1, 200), s.metric(metric)
		if i > 0 {
			shared = times(1, 429) // since the first of these ways
		}
		for _, c := range []struct {
			reason, path, address string
			want                  []int
		}{
			{"by default the address counts", "/default", one, []int{200, 200, 429}},
			{"so another address is another caller", "/default", another, []int{200}},
			{"the address counts where the policy says so", "/address", one, []int{200, 200, 429}},
			{"the rule does not apply", "/skip", one, []int{200, 200, 200, 200}},
			{"the request is refused", "/deny", one, []int{403}},
			{"all of them share", "/shared", one, shared},
			{"whatever their address", "/shared", another, append(shared, 429)},
		} {
			if diff := cmp.Diff(c.want, s.from(c.address).statuses(len(c.want), c.path, fields...)); diff != "" {
				t.Errorf("%s: %s: %s", how, c.reason, diff)
			}
		}
		for _, path := range []string{"default", "address", "skip", "deny", "shared"} {
			if diff := cmp.Diff([]int{200, 200, 429}, s.from("127.0.0.2").statuses(3, "/"+path, "X-Tenant", fmt.Sprint("acme", i))); diff != "" {
				t.Errorf("%s: a caller with the header, at %s: %s", how, path, diff)
			}
		}
		if got := s.metric(metric) - before; got != 4 {
			t.Errorf("%s: %d are reported, want 4", how, got)
		}
	}
}

func TestOtherSpellingsOfAPathAreNoWayRound(t *testing.T) {
	t.Parallel()
	login := func(options string) string {
		return policy("p", "  request: {"+options+"}\n  rules: [{name: r, limit: 1000, window: 366d, match: {paths: [{type: Exact, value: /api/login}]}}]\n")
	}
	usual := open(t, setup{}, login(""))
	folding := open(t, setup{}, login("pathCase: Insensitive"))
	strict := open(t, setup{}, login("trailingSlash: Strict"))
	for _, c := range []struct {
		target                 string
		usual, folding, strict bool
	}{
		{"/api/login", true, true, true},
		{"/api//login", true, true, true},
		{"/api/./login", true, true, true},
		{"/api/login/", true, true, false},
		{"/API/login", false, true, false},
		{"/api/%6Cogin", true, true, true},
		{"/x/../api/login", true, true, true},
		{"/x/%2e%2e/api/login", true, true, true},
		{"/api/login?x=1", true, true, true},
		{"/api;a=b/login;c", true, true, true},
		{"/api%2Flogin", false, false, false},
		{"/api/logins", false, false, false},
	} {
		for _, at := range []struct {
			name string
			site *site
			want bool
		}{{"usual", usual, c.usual}, {"folding", folding, c.folding}, {"strict", strict, c.strict}} {
			answer := at.site.rawGet(c.target)
			if counted := answer.header.Get("X-RateLimit-Limit") != ""; answer.status != http.StatusOK || counted != at.want {
				t.Errorf("%s, %s: status %d, counted %v, want %v", at.name, c.target, answer.status, counted, at.want)
			}
			seen := at.site.app.requests()
			if got := seen[len(seen)-1].RequestURI; got != c.target {
				t.Errorf("%s: the application is asked for %s, not for %s", at.name, got, c.target)
			}
		}
	}
}

func TestGuessingIsLimitedWhateverIsGuessed(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", "  rules: [{name: r, limit: 5, window: 366d, match: {paths: [{type: Prefix, value: /verify}]}, key: [{type: ClientIP}]}]\n"))
	guesser := s.from("127.0.0.2")
	var passed int
	for code := range 1000 {
		passed += guesser.passed(1, fmt.Sprintf("/verify/%06d", code))
	}
	s.wantAttempts(map[string]int{"127.0.0.2": 1000})
	if passed != 5 {
		t.Errorf("%d guesses pass, want 5", passed)
	}
}

func TestWhatCallersChooseMakesKeysOfBoundedLength(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", perUser(1)))
	caller := s.from("127.0.0.2")
	for name, value := range map[string]string{
		"60 KiB":                  strings.Repeat("a", 60<<10),
		"60 KiB that end in b":    strings.Repeat("a", 60<<10-1) + "b",
		"bytes that are no UTF-8": "\xff\xfe",
		"an emoji":                "\U0001F600",
		"an escaped line end":     "%0d%0a",
		"braces":                  "}:shop/p/r:1:2{",
		"a wildcard":              "*",
	} {
		if diff := cmp.Diff([]int{200, 429}, caller.statuses(2, "/", "X-User-Id", value)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := s.rawGet("/", "X-User-Id: a\x00b").status; got != http.StatusBadRequest {
		t.Errorf("a NUL is answered %d, want 400", got)
	}
	keys := s.keys()
	if len(keys) != 7 {
		t.Errorf("there are %d counters, want 7: %q", len(keys), keys)
	}
	for _, key := range keys {
		if len(key) > 250 || strings.ContainsAny(key, "\r\n*\x00 ") || strings.Count(key, "{") != 1 || !strings.HasSuffix(key, fmt.Sprint(":31622400:", s.window(31622400))) {
			t.Errorf("a counter is named %q", key)
		}
	}
}

func TestPoliciesCountApart(t *testing.T) {
	t.Parallel()
	t.Run("in two namespaces, whatever their names", func(t *testing.T) {
		t.Parallel()
		other := strings.Replace(policy("p", "  redisRef: {name: default, namespace: shop}\n"+perUser(5)), "namespace: shop}\nspec", "namespace: depot}\nspec", 1)
		s := open(t, setup{}, policy("p", perUser(3)), other)
		if diff := cmp.Diff(times(3, 200, 429), s.from("127.0.0.2").statuses(4, "/", "X-User-Id", "bob")); diff != "" {
			t.Error(diff)
		}
		number := s.window(31622400)
		want := map[string]int{
			fmt.Sprint("rl:{bob}:shop/p/r:31622400:", number):  4,
			fmt.Sprint("rl:{bob}:depot/p/r:31622400:", number): 3,
		}
		eventually(t, "each has a counter", func() bool {
			got := map[string]int{}
			for _, key := range s.keys() {
				got[key] = s.count(key)
			}
			return cmp.Equal(want, got)
		})
	})
	t.Run("in two clusters with prefixes of their own", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", perUser(2)))
		first := s.from("127.0.0.2").passed(3, "/", "X-User-Id", "bob")
		write(t, s.file, s.documents("  keyPrefix: east\n", []string{policy("p", perUser(2))}))
		east := s.enforce(t).from(t, "127.0.0.2").passed(3, "/", "X-User-Id", "bob")
		if first != 2 || east != 2 || len(s.keys()) != 2 || !strings.HasPrefix(s.keys()[0], "east:{bob}:") {
			t.Errorf("%d and %d pass, want 2 each; counters %q", first, east, s.keys())
		}
	})
}
