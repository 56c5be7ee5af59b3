package standalone

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func TestEmbeddedKeysExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := miniredis.NewMiniRedis() // without its listener, which a bubble cannot wait for
		if err := redis.Set("key", "1"); err != nil {
			t.Fatal(err)
		}
		redis.SetTTL("key", 10*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			(&embedded{redis}).age(ctx)
		}()
		<-time.After(9500 * time.Millisecond) // time of the bubble
		if !redis.Exists("key") {
			t.Error("the key is gone too early")
		}
		<-time.After(time.Second)
		if redis.Exists("key") {
			t.Error("the key never expires")
		}
		cancel()
		<-done
	})
}
