package redis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestSentinelsChangeThePrimary(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason  string
		options func(*testing.T) SentinelOptions
	}{
		{"a plain group", func(*testing.T) SentinelOptions { return SentinelOptions{} }},
		{"passwords and TLS", func(t *testing.T) SentinelOptions {
			return SentinelOptions{Password: "data", SentinelPassword: "watch", TLS: NewCertificates(t)}
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			options := test.options(t)
			g := StartSentinels(t, options)
			client := failoverClient(t, g, options)
			set(t, client, "before")
			first := g.Failover()
			if second := g.Primary(); second == first {
				t.Fatalf("%s is still the primary", first.Addr())
			}
			if err := first.Client().Set(t.Context(), "k", "v", 0).Err(); !redis.HasErrorPrefix(err, "READONLY") {
				t.Errorf("the old primary answers a write with %v", err)
			}
			set(t, client, "after a failover")
			second := g.KillPrimary()
			third := g.Primary()
			set(t, client, "after a kill")
			second.Run()
			g.AwaitSettled()
			if g.Primary() != third {
				t.Errorf("the dead primary came back as the primary")
			}
			await(t, "the replica that came back lacks keys", func(ctx context.Context) error {
				if n := second.Client().DBSize(ctx).Val(); n != 3 {
					return fmt.Errorf("%d keys, want 3", n)
				}
				return nil
			})
		})
	}
}

func failoverClient(t *testing.T, g *Sentinels, options SentinelOptions) *redis.Client {
	opts := redis.FailoverOptions{
		MasterName: MasterName, SentinelAddrs: g.Addresses(), Protocol: 2,
		Password: options.Password, SentinelPassword: options.SentinelPassword,
	}
	if options.TLS != nil {
		opts.TLSConfig = options.TLS.Config(t)
	}
	client := redis.NewFailoverClient(&opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// set writes, again until the client has found the primary, and until a replica has
// it: what only a primary has is lost with it.
func set(t *testing.T, client *redis.Client, key string) {
	t.Helper()
	await(t, "the client does not find the primary", func(ctx context.Context) error {
		if err := client.Set(ctx, key, "v", 0).Err(); err != nil {
			return err
		}
		if n, err := client.Wait(ctx, 1, 100*time.Millisecond).Result(); err != nil || n < 1 {
			return fmt.Errorf("%d replicas have it: %w", n, errors.Join(err, errors.New("want one")))
		}
		return nil
	})
}
