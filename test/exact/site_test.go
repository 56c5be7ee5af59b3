//go:build exact

package exact

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	redistest "github.com/weir-dev/weir/test/redis"
)

// site is a Redis of some topology.
type site struct {
	job // how to get there
	// masters are the servers that count now.
	masters func() []*redistest.Server
}

func standalone(t *testing.T) site {
	server := redistest.Start(t)
	return site{
		job:     job{Mode: v1alpha1.RedisStandalone, Addresses: []string{server.Addr()}},
		masters: func() []*redistest.Server { return []*redistest.Server{server} },
	}
}

func sentinels(t *testing.T) (site, *redistest.Sentinels) {
	g := redistest.StartSentinels(t, redistest.SentinelOptions{})
	return site{
		job:     job{Mode: v1alpha1.RedisSentinel, Addresses: g.Addresses(), Master: redistest.MasterName},
		masters: func() []*redistest.Server { return []*redistest.Server{g.Primary()} },
	}, g
}

func cluster(t *testing.T, replicas int) (site, *redistest.Cluster) {
	c := redistest.StartCluster(t, redistest.ClusterOptions{Masters: 3, Replicas: replicas})
	return site{
		job:     job{Mode: v1alpha1.RedisCluster, Addresses: c.Addresses()},
		masters: c.Masters,
	}, c
}

// counted is what the counters of a rule say was admitted, and how many marks of
// denials there are.
func (s site) counted(t *testing.T, rule string) (admitted, denied int64) {
	t.Helper()
	ctx := context.Background()
	for _, master := range s.masters() {
		for _, key := range master.Client().Keys(ctx, "*}:"+rule+":*").Val() {
			n, err := master.Client().Get(ctx, key).Int64()
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if strings.HasSuffix(key, ":denied") {
				admitted -= n
				denied += n
			} else {
				admitted += n
			}
		}
	}
	return admitted, denied
}
