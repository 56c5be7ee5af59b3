package redisstore

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	redistest "github.com/weir-dev/weir/test/redis"
)

// counted counts calls of the script that decide something.
type counted struct{ atomic.Int64 }

func (c *counted) Called(time.Duration, error) { c.Add(1) }
func (*counted) Repaired(int64)                {}

func TestWarmStoreDecidesInOneCall(t *testing.T) {
	for _, test := range []struct {
		reason string
		config func(*testing.T) (Config, []*redistest.Server)
	}{
		{"on one server", func(t *testing.T) (Config, []*redistest.Server) {
			server := redistest.Start(t)
			return Config{Addresses: []string{server.Addr()}}, []*redistest.Server{server}
		}},
		{"on every master of a Cluster", func(t *testing.T) (Config, []*redistest.Server) {
			c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 3})
			return Config{Mode: v1alpha1.RedisCluster, Addresses: c.Addresses()}, c.Masters()
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			config, servers := test.config(t)
			called := new(counted)
			config.Timeout, config.DialTimeout, config.Observer = 20*time.Second, 5*time.Second, called
			s, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			s.Warm(t.Context())
			for _, server := range servers {
				if n := connected(t, server); n < maxLines {
					t.Errorf("%d connections, want one for each of %d lines", n, maxLines)
				}
			}
			storetest.Do(t, s, limiter.Charge, storetest.Check("{t}:k", 5))
			if n := called.Load(); n != 1 {
				t.Errorf("the first decision takes %d calls, want 1", n)
			}
		})
	}
}

// connected counts the clients of the default user: neither the bed nor other nodes.
func connected(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	for line := range strings.Lines(server.Client().ClientList(t.Context()).Val()) {
		if strings.Contains(line, " user=default ") && !strings.Contains(line, " flags=S") && !strings.Contains(line, " flags=M") {
			n++
		}
	}
	return n
}

func TestWarmingAnAbsentServerEnds(t *testing.T) {
	s := newStore(t, "127.0.0.1:1")
	s.Warm(t.Context())
	op := &limiter.Op{Kind: limiter.Charge, Checks: []limiter.Check{storetest.Check("k", 1)}}
	s.Do(t.Context(), []*limiter.Op{op})
	if op.Err == nil {
		t.Error("a decision is made without a server")
	}
}
