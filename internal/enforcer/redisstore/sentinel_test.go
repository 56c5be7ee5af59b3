package redisstore

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/limiter/storetest"
	redistest "github.com/weir-dev/weir/test/redis"
)

func TestStoreFollowsThePrimary(t *testing.T) {
	g := redistest.StartSentinels(t, redistest.SentinelOptions{})
	s, err := New(Config{
		Mode: v1alpha1.RedisSentinel, Addresses: g.Addresses(), Sentinel: Sentinel{Master: redistest.MasterName},
		Timeout: 20 * time.Second, DialTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	storetest.Do(t, s, limiter.Charge, storetest.Check("k:", 5))
	g.AwaitReplicated()
	g.Failover()
	if op := storetest.Do(t, s, limiter.Charge, storetest.Check("k:", 5)); op.Checks[0].Admitted != 2 {
		t.Errorf("%d admitted after a failover without loss, want 2", op.Checks[0].Admitted)
	}
}
