package redisstore

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	redistest "github.com/weir-dev/weir/test/redis"
)

// canary stands in every secret and in every answer that a test can choose.
const canary = "canary4711"

var shop = Probe{Namespaces: []string{"shop"}}

// at is how to reach a server.
func at(address string) Config {
	return Config{Addresses: []string{address}, DialTimeout: 5 * time.Second}
}

// as is at with a login.
func as(address, username, password string) Config {
	c := at(address)
	c.Username, c.Password = username, password
	return c
}

func order(t *testing.T, server *redistest.Server, words ...any) {
	t.Helper()
	if err := server.Client().Do(context.Background(), words...).Err(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}

// user makes a user with the documented rights, and some more or fewer.
func user(t *testing.T, server *redistest.Server, name string, more ...any) {
	t.Helper()
	words := []any{"ACL", "SETUSER", name, "reset", "on", ">" + canary, "~rl:*"}
	for _, r := range dataRights {
		words = append(words, r.rule)
	}
	order(t, server, append(words, more...)...)
}

func mustFind(t *testing.T, cfg Config, probe Probe, want Fault, message string) Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := Check(ctx, cfg, probe)
	if r.Fault != want || !strings.Contains(r.Message(), message) || strings.Contains(r.Message(), canary) {
		t.Errorf("got %q: %s\nwant %q: … %s …", r.Fault, r.Message(), want, message)
	}
	return r
}

// serverFaults are what can be wrong with a server, by reason. prepare gets a
// server that is well, and returns how to reach the one to be checked.
var serverFaults = map[string]struct {
	prepare func(t *testing.T, s *redistest.Server) Config
	want    Fault
	message string
}{
	"all is well": {
		func(_ *testing.T, s *redistest.Server) Config { return at(s.Addr()) },
		"", "primary, 0 replicas connected, evicts no counters",
	},
	"nobody listens": {
		func(_ *testing.T, s *redistest.Server) Config { s.Stop(); return at(s.Addr()) },
		FaultRefused, "refuses connections: check host and port, and that it runs",
	},
	"no host of that name": {
		func(*testing.T, *redistest.Server) Config { return at("redis.invalid:6379") },
		FaultNameNotFound, "the name of the server redis.invalid:6379 is not known to DNS",
	},
	"a server that hangs": {
		func(_ *testing.T, s *redistest.Server) Config {
			s.Pause()
			c := at(s.Addr())
			c.DialTimeout = 200 * time.Millisecond
			return c
		},
		FaultNoAnswer, "does not answer in time",
	},
	"not a Redis": {
		func(t *testing.T, _ *redistest.Server) Config { return at(webServer(t)) },
		FaultUnintelligible, "does not answer as a Redis does",
	},
	"no more clients": {
		func(t *testing.T, s *redistest.Server) Config {
			order(t, s, "CONFIG", "SET", "maxclients", "1")
			return as(s.Addr(), "weir", canary)
		},
		FaultTooManyClients, "takes no more clients",
	},
	"a login is asked for": {
		func(t *testing.T, s *redistest.Server) Config {
			order(t, s, "CONFIG", "SET", "requirepass", canary)
			return at(s.Addr())
		},
		FaultLoginRequired, "asks for a login: name a Secret with username and password in credentialsSecretRef",
	},
	"a wrong password": {
		func(t *testing.T, s *redistest.Server) Config {
			user(t, s, "weir")
			return as(s.Addr(), "weir", canary+"x")
		},
		FaultWrongLogin, "does not accept username and password, or the user is turned off",
	},
	"a user that is turned off": {
		func(t *testing.T, s *redistest.Server) Config {
			user(t, s, "weir", "off")
			return as(s.Addr(), "weir", canary)
		},
		FaultWrongLogin, "its flags must say on",
	},
	"a database that is not there": {
		func(_ *testing.T, s *redistest.Server) Config {
			c := at(s.Addr())
			c.Database = 99
			return c
		},
		FaultNoDatabase, "has no database of that number",
	},
	"a replica": {
		func(t *testing.T, s *redistest.Server) Config {
			order(t, s, "REPLICAOF", "127.0.0.1", "1")
			return at(s.Addr())
		},
		FaultReadOnly, "is a replica and takes no writes",
	},
	"no memory left": {
		func(t *testing.T, s *redistest.Server) Config {
			order(t, s, "CONFIG", "SET", "maxmemory", "1")
			return at(s.Addr())
		},
		FaultOutOfMemory, "has reached maxmemory",
	},
	"writes are stopped": {
		func(t *testing.T, s *redistest.Server) Config {
			order(t, s, "CONFIG", "SET", "min-replicas-to-write", "1")
			return at(s.Addr())
		},
		FaultWritesStopped, "too few replicas follow it",
	},
	"a command under another name": {
		func(t *testing.T, _ *redistest.Server) Config {
			return at(redistest.Start(t, "--rename-command", "EXPIREAT", canary).Addr())
		},
		FaultMissingCommand, "(+expireat): give them back under their own names",
	},
	"keys that are something else": {
		func(t *testing.T, s *redistest.Server) Config { takeKeys(t, s); return at(s.Addr()) },
		FaultKeyTaken, "choose another keyPrefix",
	},
	"a part of a Cluster": {
		func(t *testing.T, _ *redistest.Server) Config {
			return at(redistest.Start(t, "--cluster-enabled", "yes").Addr())
		},
		FaultIsCluster, "is part of a Cluster: set mode: Cluster",
	},
	"no Cluster": {
		func(_ *testing.T, s *redistest.Server) Config {
			c := at(s.Addr())
			c.Mode = v1alpha1.RedisCluster
			return c
		},
		FaultNotCluster, "is not part of a Cluster: set mode: Standalone",
	},
	"a Cluster without slots": {
		func(t *testing.T, _ *redistest.Server) Config {
			c := at(redistest.Start(t, "--cluster-enabled", "yes").Addr())
			c.Mode = v1alpha1.RedisCluster
			return c
		},
		FaultClusterDown, "does not serve all slots",
	},
	"no Sentinel": {
		func(_ *testing.T, s *redistest.Server) Config {
			c := at(s.Addr())
			c.Mode, c.Sentinel.Master = v1alpha1.RedisSentinel, "main"
			return c
		},
		FaultNotSentinel, "is no Sentinel: list the Sentinels in addresses",
	},
}

func TestCheckNamesTheFaultOfAServer(t *testing.T) {
	for name, test := range serverFaults {
		t.Run(name, func(t *testing.T) {
			mustFind(t, test.prepare(t, redistest.Start(t)), shop, test.want, test.message)
		})
	}
}

// webServer answers what it gets as a web server does.
func webServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// takeKeys puts lists where a probe would count, now and in the next window.
func takeKeys(t *testing.T, s *redistest.Server) {
	t.Helper()
	now := time.Now().Unix() / probeWindow
	for n := now - 1; n < now+6; n++ {
		order(t, s, "RPUSH", fmt.Sprint("rl:{weir-probe}:shop/weir-probe/probe:10:", n), canary)
	}
}

func TestCheckNamesEveryMissingRight(t *testing.T) {
	server := redistest.Start(t)
	login := as(server.Addr(), "weir", canary)
	withDatabase := login
	withDatabase.Database = 3
	for _, r := range dataRights {
		t.Run("without "+r.rule, func(t *testing.T) {
			user(t, server, "weir", "-"+r.rule[1:])
			mustFind(t, login, shop, FaultMissingRights, "the user lacks rights on the server "+server.Addr()+" ("+r.rule+"): grant them with ACL SETUSER")
		})
	}
	for name, test := range map[string]struct {
		login Config
		more  []any
		probe Probe
		want  Fault
		lacks string
	}{
		"none":                       {login, nil, shop, "", ""},
		"none, with INFO":            {login, []any{"+info"}, shop, "", ""},
		"two commands":               {login, []any{"-get", "-time"}, shop, FaultMissingRights, "(+time +get)"},
		"no key at all":              {login, []any{"resetkeys"}, shop, FaultMissingRights, "(~rl:{*}:shop/*)"},
		"keys of another prefix":     {login, nil, Probe{"prod", []string{"shop"}}, FaultMissingRights, "(~prod:{*}:shop/*)"},
		"keys to read only":          {login, []any{"resetkeys", "%R~rl:*"}, shop, FaultMissingRights, "(~rl:{*}:shop/*)"},
		"a command and keys":         {login, []any{"resetkeys", "-incrby"}, shop, FaultMissingRights, "(~rl:{*}:shop/* +incrby)"},
		"a namespace's own user":     {login, []any{"resetkeys", "~rl:{*}:shop/*"}, shop, "", ""},
		"another namespace's user":   {login, []any{"resetkeys", "~rl:{*}:other/*"}, shop, FaultMissingRights, "(~rl:{*}:shop/*)"},
		"the second of namespaces":   {login, []any{"resetkeys", "~rl:{*}:shop/*"}, Probe{"", []string{"shop", "pay"}}, FaultMissingRights, "(~rl:{*}:pay/*)"},
		"another database":           {withDatabase, nil, shop, FaultMissingRights, "(+select)"},
		"another database, with it":  {withDatabase, []any{"+select"}, shop, "", ""},
		"commands and no key at all": {login, []any{"nocommands", "resetkeys"}, shop, FaultMissingRights, "(+evalsha +eval +time +incrby +decrby +get +set +del +expireat +ttl)"},
	} {
		t.Run(name, func(t *testing.T) {
			user(t, server, "weir", test.more...)
			mustFind(t, test.login, test.probe, test.want, test.lacks)
		})
	}
}

func TestCheckLeavesNothingBehind(t *testing.T) {
	server := redistest.Start(t)
	mustFind(t, at(server.Addr()), Probe{Namespaces: []string{"shop", "pay"}}, "", "")
	keys := server.Client().Keys(t.Context(), "*").Val()
	if len(keys) == 0 {
		t.Error("nothing was counted")
	}
	for _, key := range keys {
		if left := server.Client().PTTL(t.Context(), key).Val(); left <= 0 || left > probeWindow*time.Second {
			t.Errorf("%s stays for %v", key, left)
		}
	}
}

func TestCheckTellsWhatItCanLearn(t *testing.T) {
	server, replica := redistest.Start(t), redistest.Start(t)
	host, port, _ := net.SplitHostPort(server.Addr())
	order(t, server, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	order(t, replica, "REPLICAOF", host, port)
	// WAIT counts the replicas that have taken over this write.
	order(t, server, "SET", "first", "1")
	for server.Client().Wait(t.Context(), 1, time.Second).Val() != 1 {
		if t.Context().Err() != nil {
			t.Fatal("the replica does not follow")
		}
	}
	version := server.Client().InfoMap(t.Context(), "server").Item("Server", "redis_version")
	login := as(server.Addr(), "weir", canary)
	for name, test := range map[string]struct {
		right  string
		memory []any
		want   Facts
	}{
		"without the right for INFO": {"-info", []any{"maxmemory", "0"}, Facts{version, "primary", 0, -1, EvictionUnknown}},
		"unbounded memory":           {"+info", []any{"maxmemory", "0", "maxmemory-policy", "allkeys-lru"}, Facts{version, "primary", 0, 1, EvictionNever}},
		"writes are refused":         {"+info", []any{"maxmemory", "1gb", "maxmemory-policy", "noeviction"}, Facts{version, "primary", 0, 1, EvictionNever}},
		"any key is dropped":         {"+info", []any{"maxmemory", "1gb", "maxmemory-policy", "allkeys-lfu"}, Facts{version, "primary", 0, 1, EvictionRisk}},
		"keys that expire are":       {"+info", []any{"maxmemory", "1gb", "maxmemory-policy", "volatile-ttl"}, Facts{version, "primary", 0, 1, EvictionRisk}},
	} {
		t.Run(name, func(t *testing.T) {
			user(t, server, "weir", test.right)
			order(t, server, append([]any{"CONFIG", "SET"}, test.memory...)...)
			if r := Check(t.Context(), login, shop); r.Fault != "" || r.Facts != test.want {
				t.Errorf("got %s, %+v\nwant %+v", r.Message(), r.Facts, test.want)
			}
		})
	}
}

func TestFactsOfAClusterAreThoseOfItsPrimaries(t *testing.T) {
	one := Facts{"7.2.4", "primary", 1, 1, EvictionNever}
	for name, test := range map[string]struct {
		other Facts
		want  Facts
		text  string
	}{
		"the same":                 {one, Facts{"7.2.4", "primary", 2, 2, EvictionNever}, "version 7.2.4, 2 primaries, 2 replicas connected, evicts no counters"},
		"an older one":             {Facts{"7.0.15", "primary", 1, 0, EvictionNever}, Facts{"7.0.15", "primary", 2, 1, EvictionNever}, "version 7.0.15, 2 primaries, 1 replica connected, evicts no counters"},
		"one that evicts":          {Facts{"7.10", "primary", 1, 1, EvictionRisk}, Facts{"7.2.4", "primary", 2, 2, EvictionRisk}, "may evict counters: set maxmemory-policy noeviction"},
		"one that keeps to itself": {Facts{"7.2.4", "primary", 1, -1, EvictionUnknown}, Facts{"7.2.4", "primary", 2, -1, EvictionUnknown}, "version 7.2.4, 2 primaries, replicas and eviction unknown: grant +info to see them"},
	} {
		t.Run(name, func(t *testing.T) {
			got := one.merge(test.other)
			if got != test.want || !strings.Contains(got.String(), test.text) {
				t.Errorf("got %+v: %s", got, got)
			}
		})
	}
}

func TestEveryFaultHasWords(t *testing.T) {
	for fault, words := range faults {
		if words.reason == "" || strings.Count(words.wrong, "%s") != 1 || words.mend == "" || fault.Reason() != words.reason {
			t.Errorf("%s: %+v", fault, words)
		}
	}
	if r := Fault("").Reason(); r != v1alpha1.ReasonConnected {
		t.Errorf("no fault has reason %s", r)
	}
}

// TestTheScriptNeedsNoOtherRight keeps the rights that are checked, and documented,
// complete.
func TestTheScriptNeedsNoOtherRight(t *testing.T) {
	for _, part := range strings.Split(Script, "call('")[1:] {
		name, _, _ := strings.Cut(part, "'")
		found := false
		for _, r := range dataRights {
			found = found || r.rule == "+"+strings.ToLower(name)
		}
		if !found {
			t.Errorf("the script calls %s", name)
		}
	}
}
