package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// fill writes keys through a client of the Cluster's, to every node.
func fill(t *testing.T, client redis.UniversalClient, n int) {
	t.Helper()
	for i := range n {
		set(t, client, fmt.Sprint("key", i))
	}
}

func keysOf(t *testing.T, c *Cluster) int {
	t.Helper()
	total := 0
	for _, master := range c.Masters() {
		total += int(master.Client().DBSize(t.Context()).Val())
	}
	return total
}

func clusterClient(t *testing.T, c *Cluster, options ClusterOptions) *redis.ClusterClient {
	opts := redis.ClusterOptions{Addrs: c.Addresses(), Password: options.Password, Protocol: 2}
	if options.TLS != nil {
		opts.TLSConfig = options.TLS.Config(t)
	}
	client := redis.NewClusterClient(&opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestClusterMovesSlotsAndGrows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason  string
		options func(*testing.T) ClusterOptions
	}{
		{"a plain Cluster", func(*testing.T) ClusterOptions { return ClusterOptions{} }},
		{"a Cluster of one", func(*testing.T) ClusterOptions { return ClusterOptions{Masters: 1} }},
		{"a password and TLS", func(t *testing.T) ClusterOptions {
			return ClusterOptions{Masters: 2, Password: "secret", TLS: NewCertificates(t)}
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			options := test.options(t)
			c := StartCluster(t, options)
			fill(t, clusterClient(t, c, options), 200)
			first := c.Masters()[0]
			had := len(c.SlotsOf(first))
			added := c.AddNode()
			c.MoveSlots(first, added, 500)
			if len(c.SlotsOf(added)) != 500 || len(c.SlotsOf(first)) != had-500 {
				t.Errorf("%d slots moved, %d of %d stayed", len(c.SlotsOf(added)), len(c.SlotsOf(first)), had)
			}
			if n := keysOf(t, c); n != 200 {
				t.Errorf("%d keys after the move, want 200", n)
			}
			if n := added.Client().DBSize(t.Context()).Val(); n == 0 {
				t.Error("no key has moved with its slot")
			}
		})
	}
}

func TestClusterAnswersWithRedirectsWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, ClusterOptions{Masters: 2})
	from := c.MasterOf("{tag}")
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	slot := int(from.Client().ClusterKeySlot(t.Context(), "{tag}").Val())
	from.Do("SET", "{tag}old", "v")
	c.BeginMove(from, to, slot)
	for _, test := range []struct {
		reason, answer string
		server         *Server
		keys           []string
	}{
		{"a key that is still there is served", "", from, []string{"{tag}old"}},
		{"a key that is not there yet is elsewhere", "ASK", from, []string{"{tag}new"}},
		{"some here and some there must wait", "TRYAGAIN", from, []string{"{tag}old", "{tag}new"}},
		{"the new master serves who was sent there only", "MOVED", to, []string{"{tag}new"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			answer := ""
			if err := test.server.Client().Exists(t.Context(), test.keys...).Err(); err != nil {
				answer, _, _ = strings.Cut(err.Error(), " ")
			}
			if answer != test.answer {
				t.Errorf("the answer is %q, want %q", answer, test.answer)
			}
		})
	}
}

func TestClusterReplacesMasters(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, ClusterOptions{Replicas: 1})
	client := clusterClient(t, c, ClusterOptions{})
	fill(t, client, 50)
	first := c.Masters()[0]
	second := c.FailOver(first)
	if masters := c.Masters(); len(masters) != 3 || len(c.SlotsOf(second)) == 0 {
		t.Errorf("%d masters, the new one with %d slots", len(masters), len(c.SlotsOf(second)))
	}
	fill(t, client, 100)
	c.KillMaster(second)
	if len(c.SlotsOf(first)) == 0 {
		t.Error("the first master has not come back")
	}
	second.Run()
	c.AwaitSettled()
	if replicas := c.ReplicasOf(first); len(replicas) != 1 || replicas[0] != second {
		t.Error("the dead master does not come back as a replica")
	}
	if n := keysOf(t, c); n != 100 {
		t.Errorf("%d keys, want 100", n)
	}
}
