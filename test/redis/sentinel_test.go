package redis

import (
	"context"
	"fmt"
	"testing"

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
			setSafely(t, g, client, "before")
			first := g.Failover()
			if second := g.Primary(); second == first {
				t.Fatalf("%s is still the primary", first.Addr())
			}
			if err := first.Client().Set(t.Context(), "k", "v", 0).Err(); !redis.HasErrorPrefix(err, "READONLY") {
				t.Errorf("the old primary answers a write with %v", err)
			}
			setSafely(t, g, client, "after a failover")
			second := g.KillPrimary()
			third := g.Primary()
			setSafely(t, g, client, "after a kill")
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

// set writes, again until the client has found the primary.
func set(t *testing.T, client redis.UniversalClient, key string) {
	t.Helper()
	await(t, "the client does not find the primary", func(ctx context.Context) error {
		return client.Set(ctx, key, "v", 0).Err()
	})
}

// setSafely writes until all replicas have it, too.
func setSafely(t *testing.T, g *Sentinels, client *redis.Client, key string) {
	t.Helper()
	set(t, client, key)
	g.AwaitReplicated()
}
