package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	redistest "github.com/weir-dev/weir/test/redis"
)

// watched is how to reach what Sentinels watch, with the documented users.
func watched(g *redistest.Sentinels) Config {
	return Config{
		Mode: v1alpha1.RedisSentinel, Addresses: g.Addresses(), DialTimeout: 5 * time.Second,
		Sentinel: Sentinel{Master: redistest.MasterName, Username: "weir", Password: canary},
		Username: "weir", Password: canary,
	}
}

func startWatched(t *testing.T, options redistest.SentinelOptions) *redistest.Sentinels {
	t.Helper()
	g := redistest.StartSentinels(t, options)
	for _, s := range g.Data() {
		order(t, s, documented(t, "weir")...)
	}
	for _, s := range g.Sentinels() {
		order(t, s, documentedForSentinels(t)...)
	}
	return g
}

func TestCheckNamesTheFaultOfSentinels(t *testing.T) {
	g := startWatched(t, redistest.SentinelOptions{SentinelPassword: "watch"})
	for _, test := range []struct {
		reason  string
		change  func(c *Config)
		want    Fault
		message string
	}{
		{"all is well", func(*Config) {}, "", "primary"},
		{"the Sentinels' one password", func(c *Config) { c.Sentinel.Username, c.Sentinel.Password = "", "watch" }, "", "primary"},
		{"a Sentinel that is not there", func(c *Config) { c.Addresses = append([]string{"127.0.0.1:1"}, c.Addresses...) }, "", "primary"},
		{"no Sentinel is there", func(c *Config) { c.Addresses = []string{"127.0.0.1:1", "127.0.0.1:2"} }, FaultRefused, "Sentinel 127.0.0.1:1 refuses connections"},
		{"a server among dead Sentinels", func(c *Config) { c.Addresses = []string{"127.0.0.1:1", g.Data()[0].Addr()} }, FaultNotSentinel, "Sentinel " + g.Data()[0].Addr() + " is no Sentinel"},
		{"no login to Sentinels", func(c *Config) { c.Sentinel.Username, c.Sentinel.Password = "", "" }, FaultSentinelLoginRequired, "Sentinel " + g.Addresses()[0] + " asks for a login of its own"},
		{"a wrong password of Sentinels", func(c *Config) { c.Sentinel.Password = "wrong" }, FaultSentinelWrongLogin, "check the Secret of sentinel.credentialsSecretRef"},
		{"another name of the primary", func(c *Config) { c.Sentinel.Master = "other" }, FaultSentinelNoMaster, "watches no primary of that name"},
		{"a wrong password of the primary", func(c *Config) { c.Password = "wrong" }, FaultWrongLogin, "the primary " + g.Primary().Addr() + " does not accept"},
		{"a Sentinel in place of the server", func(c *Config) {
			c.Mode, c.Addresses, c.Password = v1alpha1.RedisStandalone, c.Addresses[:1], canary
		}, FaultIsSentinel, "is a Sentinel and holds no data"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			cfg := watched(g)
			test.change(&cfg)
			mustFind(t, cfg, shop, test.want, test.message)
		})
	}
	for _, r := range sentinelRights {
		t.Run("without "+r.rule, func(t *testing.T) {
			for _, s := range g.Sentinels() {
				order(t, s, documentedForSentinels(t, "-"+r.rule[1:])...)
			}
			mustFind(t, watched(g), shop, FaultMissingRights, "the user lacks rights on Sentinel "+g.Addresses()[0]+" ("+r.rule+")")
		})
	}
	t.Run("without channels", func(t *testing.T) {
		for _, s := range g.Sentinels() {
			order(t, s, documentedForSentinels(t, "resetchannels")...)
		}
		mustFind(t, watched(g), shop, FaultMissingRights, "("+sentinelChannels+")")
	})
}

// TestLoginsOfSentinelsAreTheirOwn is about passwords: one of each, the same user
// on both, and none where the Sentinels ask for none.
func TestLoginsOfSentinelsAreTheirOwn(t *testing.T) {
	certificates := redistest.NewCertificates(t)
	for name, test := range map[string]struct {
		options redistest.SentinelOptions
		change  func(c *Config)
	}{
		"a user on both": {redistest.SentinelOptions{}, func(*Config) {}},
		"another password than the servers', and TLS": {
			redistest.SentinelOptions{Password: "data", SentinelPassword: "watch", TLS: certificates},
			func(c *Config) {
				c.Username, c.Password, c.TLS = "", "data", certificates.Config(t)
				c.Sentinel.Username, c.Sentinel.Password = "", "watch"
			},
		},
		"a user on servers, none on Sentinels": {redistest.SentinelOptions{}, func(c *Config) { c.Sentinel.Username, c.Sentinel.Password = "", "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startWatched(t, test.options)
			cfg := watched(g)
			test.change(&cfg)
			mustFind(t, cfg, shop, "", "primary")
			store, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			const key = "rl:{caller}:shop/p/r:366:"
			charge(t, store, key)
			g.Failover()
			charge(t, store, key)
			for _, s := range append(g.Data(), g.Sentinels()...) {
				mustRefuseNothing(t, s)
			}
		})
	}
}

// charge counts, at last: a store that follows a failover may fail for a while.
func charge(t *testing.T, store limiter.Store, key string) {
	t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		op := &limiter.Op{Kind: limiter.Charge, Checks: []limiter.Check{storetest.Check(key, 10)}}
		store.Do(t.Context(), []*limiter.Op{op})
		if op.Err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the store answers %v", op.Err)
		}
	}
}

// sharded is how to reach a Cluster, with the documented user.
func sharded(c *redistest.Cluster) Config {
	cfg := as("", "weir", canary)
	cfg.Mode, cfg.Addresses = v1alpha1.RedisCluster, c.Addresses()
	return cfg
}

func TestCheckNamesTheFaultOfACluster(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{})
	last := c.Nodes()[2]
	users := func(t *testing.T, servers []*redistest.Server, more ...string) {
		t.Helper()
		for _, s := range servers {
			order(t, s, documented(t, "weir", append([]string{"+cluster|slots", "+asking"}, more...)...)...)
		}
	}
	for _, test := range []struct {
		reason  string
		change  func(t *testing.T, c *Config)
		want    Fault
		message string
	}{
		{"all is well", func(*testing.T, *Config) {}, "", "3 primaries, replicas and eviction unknown"},
		{"one node is known, and one that is not there", func(_ *testing.T, cfg *Config) { cfg.Addresses = []string{"127.0.0.1:1", cfg.Addresses[0]} }, "", "3 primaries"},
		{"no node is there", func(_ *testing.T, cfg *Config) { cfg.Addresses = []string{"127.0.0.1:1"} }, FaultRefused, "the node 127.0.0.1:1 refuses connections"},
		{"a wrong password", func(_ *testing.T, cfg *Config) { cfg.Password = "wrong" }, FaultWrongLogin, "does not accept username and password"},
		{"the user may not ask for slots", func(t *testing.T, _ *Config) { users(t, c.Nodes(), "-cluster") }, FaultMissingRights, "(+cluster|slots)"},
		{"the user may not follow a moving slot", func(t *testing.T, _ *Config) { users(t, c.Nodes(), "-asking") }, FaultMissingRights, "(+asking)"},
		{"one node gives fewer rights", func(t *testing.T, _ *Config) { users(t, []*redistest.Server{last}, "-incrby") }, FaultMissingRights, "on the node " + last.Addr() + " (+incrby)"},
		{"one node does not know the user", func(t *testing.T, _ *Config) { order(t, last, "ACL", "DELUSER", "weir") }, FaultWrongLogin, "the node " + last.Addr() + " does not accept"},
		{"the user may ask for information", func(t *testing.T, _ *Config) { users(t, c.Nodes(), "+info") }, "", "3 primaries, 0 replicas connected, evicts no counters"},
		{"a slot that nobody serves", func(t *testing.T, _ *Config) { order(t, last, "CLUSTER", "DELSLOTS", c.SlotsOf(last)[0]) }, FaultClusterDown, "does not serve all slots"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			users(t, c.Nodes())
			cfg := sharded(c)
			test.change(t, &cfg)
			mustFind(t, cfg, shop, test.want, test.message)
		})
	}
}

// TestDocumentedUserIsEnoughOnACluster runs the suite of all stores, and while a
// slot is on its way.
func TestDocumentedUserIsEnoughOnACluster(t *testing.T) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{})
	for _, s := range c.Nodes() {
		order(t, s, documented(t, "weir", "+cluster|slots", "+asking")...)
	}
	cfg := sharded(c)
	cfg.Timeout = 20 * time.Second
	const start = "rl:{caller}:shop/"
	newStore := func(t *testing.T) *Store {
		t.Helper()
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		for _, s := range c.Nodes() {
			s.Client().FlushAll(t.Context())
		}
		return storetest.Harness{Store: prefixed{newStore(t), start}, Delete: func(key string) {
			c.MasterOf(start).Client().Del(t.Context(), windowKey(start+key))
		}}
	})
	from := c.MasterOf(start)
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	c.BeginMove(from, to, int(slot(start)))
	charge(t, newStore(t), start+"moving/p:366:")
	for _, s := range c.Nodes() {
		mustRefuseNothing(t, s)
	}
}

// TestClusterWithTLS is about nodes that announce addresses.
func TestClusterWithTLS(t *testing.T) {
	own := newAuthority(t)
	named, stranger := own.trust(), newAuthority(t).trust()
	named.ServerName, stranger.ServerName = "redis.example.com", "redis.example.com"
	for name, test := range map[string]struct {
		hosts string // that certificates hold
		tries map[string]tlsTry
	}{
		"certificates hold a name": {"redis.example.com", map[string]tlsTry{
			"that is demanded of all": {named, ""},
			"that nobody asks for":    {own.trust(), FaultTLSNameMismatch},
			"of a stranger":           {stranger, FaultTLSUnknownAuthority},
		}},
		"certificates hold addresses": {"127.0.0.1", map[string]tlsTry{
			"which were dialled":      {own.trust(), ""},
			"and a name is demanded":  {named, FaultTLSNameMismatch},
			"and TLS is not expected": {nil, FaultTLSRequired},
			"of another authority":    {newAuthority(t).trust(), FaultTLSUnknownAuthority},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t, redistest.ClusterOptions{TLS: redistest.NewCertificates(t), Args: certificateArgs(t, own, test.hosts)})
			for reason, try := range test.tries {
				t.Run(reason, func(t *testing.T) {
					cfg := sharded(c)
					cfg.Username, cfg.Password, cfg.TLS = "", "", try.client
					mustFind(t, cfg, shop, try.want, "")
				})
			}
		})
	}
}

type tlsTry struct {
	client *tls.Config
	want   Fault
}

// certificateArgs make a server show a certificate for a host, and ask for none.
func certificateArgs(t *testing.T, a authority, host string) []string {
	t.Helper()
	certificate := a.sign(t, time.Hour, x509.ExtKeyUsageServerAuth, host)
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return []string{
		"--tls-ca-cert-file", write("ca.pem", "CERTIFICATE", a.certificate.Raw),
		"--tls-cert-file", write("server.pem", "CERTIFICATE", certificate.Certificate[0]),
		"--tls-key-file", write("key.pem", "PRIVATE KEY", key),
		"--tls-auth-clients", "no",
	}
}

func TestCheckMeetsAServerThatLoads(t *testing.T) {
	server := redistest.Start(t)
	server.RestartLoading(10 * time.Second)
	// It listens before it has loaded.
	for Check(t.Context(), at(server.Addr()), shop).Fault == FaultRefused {
		if t.Context().Err() != nil {
			t.Fatal("the server does not start")
		}
	}
	mustFind(t, at(server.Addr()), shop, FaultLoading, "is starting and still reads its data: wait")
}

func TestCheckOfAServerWithTLSOnly(t *testing.T) {
	certificates := redistest.NewCertificates(t)
	server := redistest.StartTLS(t, certificates)
	shown := certificates.Config(t)
	hidden := shown.Clone()
	hidden.Certificates = nil
	for name, test := range map[string]tlsTry{
		"all is well":                {shown, ""},
		"no certificate of a client": {hidden, FaultTLSClientCertificate},
		"TLS is not expected":        {nil, FaultTLSRequired},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := at(server.Addr())
			cfg.TLS = test.client
			if r := mustFind(t, cfg, shop, test.want, ""); strings.Contains(r.Message(), "tls:") {
				t.Error(r.Message())
			}
		})
	}
}
