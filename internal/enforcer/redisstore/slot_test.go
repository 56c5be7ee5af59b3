package redisstore

import (
	"testing"

	redistest "github.com/weir-dev/weir/test/redis"
)

func TestSlotIsTheClusters(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	for _, key := range []string{
		"", "a", "123456789", "rl:{user_123}:shop/storefront/per-user:60:29139840", "{}x", "x{}", "{a}{b}", "{", "}{", "a{b", "{\x00\xff}",
		"rl:{\"\"}:a/b/c:1:2", "rl:{shop/storefront}:shop/storefront/all:60:1",
	} {
		want := server.Client().ClusterKeySlot(t.Context(), key)
		if want.Err() != nil || int64(slot(key)) != want.Val() {
			t.Errorf("slot of %q is %d, the server says %d (%v)", key, slot(key), want.Val(), want.Err())
		}
	}
}
