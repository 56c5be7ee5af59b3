package redisstore

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestOpenRefusesWhatNoClientCanBeMadeOf(t *testing.T) {
	one, two := []string{"a:1"}, []string{"a:1", "b:1"}
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"no address":                  {Config{}, "redis store: name at least one address, host:port"},
		"two addresses of one server": {Config{Addresses: two}, "redis store: mode Standalone takes one address"},
		"Sentinels, but no name":      {Config{Addresses: two, Mode: v1alpha1.RedisSentinel}, "redis store: mode Sentinel needs the name of the primary"},
		"a database of a Cluster":     {Config{Addresses: two, Mode: v1alpha1.RedisCluster, Database: 1}, "redis store: a Cluster has database 0 only"},
		"an unknown mode":             {Config{Addresses: one, Mode: "Ring"}, "redis store: the mode is Standalone, Sentinel or Cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := open(test.config); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// settings are what must hold for every connection to a server with counters.
type settings struct {
	username, password         string
	tls                        *tls.Config
	protocol, retries, dials   int
	pool, most, pipelines      int
	dial, wait, read           time.Duration
	heedsContext, hidesLibrary bool
	maintenance                maintnotifications.Mode
}

func settingsOf(t *testing.T, client redis.UniversalClient) settings {
	t.Helper()
	switch client := client.(type) {
	case *redis.Client:
		o := client.Options()
		return settings{
			o.Username, o.Password, o.TLSConfig, o.Protocol, o.MaxRetries, o.DialerRetries, o.PoolSize, o.MaxActiveConns, o.PipelinePoolSize,
			o.DialTimeout, o.PoolTimeout, o.ReadTimeout, o.ContextTimeoutEnabled, o.DisableIdentity, o.MaintNotificationsConfig.Mode,
		}
	case *redis.ClusterClient:
		o := client.Options()
		return settings{
			o.Username, o.Password, o.TLSConfig, o.Protocol, max(o.MaxRetries, 0), o.DialerRetries, o.PoolSize, o.MaxActiveConns, o.PipelinePoolSize,
			o.DialTimeout, o.PoolTimeout, o.ReadTimeout, o.ContextTimeoutEnabled, o.DisableIdentity, o.MaintNotificationsConfig.Mode,
		}
	}
	t.Fatalf("a client of type %T", client)
	return settings{}
}

func TestAllModesBoundAndHideTheSame(t *testing.T) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "redis.example.com"}
	for mode, read := range map[v1alpha1.RedisMode]time.Duration{
		"":                       20 * time.Millisecond,
		v1alpha1.RedisStandalone: 20 * time.Millisecond,
		// Discovery has no deadline but this.
		v1alpha1.RedisSentinel: 2 * time.Second,
		v1alpha1.RedisCluster:  2 * time.Second,
	} {
		t.Run("mode "+string(mode), func(t *testing.T) {
			client, err := open(Config{
				Mode: mode, Addresses: []string{"127.0.0.1:1"}, Sentinel: Sentinel{Master: "main", Username: "s", Password: "s"},
				Username: "weir", Password: "secret", TLS: secure,
				DialTimeout: 2 * time.Second, Timeout: 20 * time.Millisecond, PoolSize: 3,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			want := settings{"weir", "secret", secure, 2, 0, 1, 3, 3, -1, 2 * time.Second, 20 * time.Millisecond, read, true, true, maintnotifications.ModeDisabled}
			if got := settingsOf(t, client); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestAbsentSettingsHaveDefaults(t *testing.T) {
	client, err := open(Config{Addresses: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	want := settings{"", "", nil, 2, 0, 1, 16, 16, -1, time.Second, 50 * time.Millisecond, 50 * time.Millisecond, true, true, maintnotifications.ModeDisabled}
	if got := settingsOf(t, client); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
