package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// maxRedirects is how often a Cluster may send one call elsewhere: to where the
// slot is now (MOVED), and from there to where it is going (ASK).
const maxRedirects = 2

// open returns a client that is not connected yet: a *redis.Client, which finds
// the primary by itself in mode Sentinel, or a *redis.ClusterClient.
func open(cfg Config) (redis.UniversalClient, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("redis store: %w", err)
	}
	common := options(cfg, cfg.Timeout)
	switch cfg.Mode {
	case v1alpha1.RedisSentinel:
		return redis.NewFailoverClient(failoverOptions(cfg, common)), nil
	case v1alpha1.RedisCluster:
		return redis.NewClusterClient(clusterOptions(cfg, common)), nil
	default:
		return redis.NewClient(common), nil
	}
}

// check refuses what no client can be made of. Whoever wrote the settings has
// been told better before.
func (cfg Config) check() error {
	switch {
	case len(cfg.Addresses) == 0:
		return errors.New("name at least one address, host:port")
	case cfg.Mode == v1alpha1.RedisStandalone && len(cfg.Addresses) > 1:
		return errors.New("mode Standalone takes one address")
	case cfg.Mode == v1alpha1.RedisSentinel && cfg.Sentinel.Master == "":
		return errors.New("mode Sentinel needs the name of the primary")
	case cfg.Mode == v1alpha1.RedisCluster && cfg.Database != 0:
		return errors.New("a Cluster has database 0 only")
	}
	switch cfg.Mode {
	case v1alpha1.RedisStandalone, v1alpha1.RedisSentinel, v1alpha1.RedisCluster:
		return nil
	}
	return errors.New("the mode is Standalone, Sentinel or Cluster")
}

// options is what all clients have in common. It sets everything that bounds a
// call, or is sent unasked, on purpose.
func options(cfg Config, timeout time.Duration) *redis.Options {
	cfg.Timeout = timeout
	cfg = cfg.withDefaults()
	return &redis.Options{
		Addr:     cfg.Addresses[0],
		DB:       cfg.Database,
		Username: cfg.Username,
		Password: cfg.Password,
		// Without a ServerName the client takes the host that it dials. Nothing
		// here turns verification off.
		TLSConfig: cfg.TLS,
		// RESP2 has no pushes, and older servers and look-alikes speak it.
		Protocol: 2,
		// A dial is no decision: it goes on when the decision that began it has
		// given up, so that the pool recovers under load.
		DialTimeout:   cfg.DialTimeout,
		DialerRetries: 1,
		// The context's deadline is the budget of a decision and goes before these.
		ContextTimeoutEnabled: true,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,
		PoolSize:              cfg.PoolSize,
		MaxActiveConns:        cfg.PoolSize,
		MaxConcurrentDials:    cfg.PoolSize,
		// Pipelines would get connections of their own beside the pool's.
		PipelinePoolSize: -1,
		ConnMaxIdleTime:  5 * time.Minute,
		// A call that may have been carried out is never repeated.
		MaxRetries: -1,
		// Nothing is sent that counting does not need: a Redis user needs no
		// right for CLIENT.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// failoverOptions are for the client that asks Sentinels for the primary whenever
// it dials, and listens to them for a change.
func failoverOptions(cfg Config, common *redis.Options) *redis.FailoverOptions {
	discovery := max(cfg.Timeout, cfg.DialTimeout)
	return &redis.FailoverOptions{
		MasterName:       cfg.Sentinel.Master,
		SentinelAddrs:    cfg.Addresses,
		SentinelUsername: cfg.Sentinel.Username,
		SentinelPassword: cfg.Sentinel.Password,

		DB:        common.DB,
		Username:  common.Username,
		Password:  common.Password,
		TLSConfig: common.TLSConfig,
		Protocol:  common.Protocol,

		DialTimeout:           common.DialTimeout,
		DialerRetries:         common.DialerRetries,
		ContextTimeoutEnabled: common.ContextTimeoutEnabled,
		// Sentinels are asked as part of a dial, with these timeouts; a decision
		// has a deadline of its own.
		ReadTimeout:  discovery,
		WriteTimeout: discovery,

		PoolTimeout:        common.PoolTimeout,
		PoolSize:           common.PoolSize,
		MaxActiveConns:     common.MaxActiveConns,
		MaxConcurrentDials: common.MaxConcurrentDials,
		PipelinePoolSize:   common.PipelinePoolSize,
		ConnMaxIdleTime:    common.ConnMaxIdleTime,

		// Maintenance notifications are off in this client by itself.
		MaxRetries:      common.MaxRetries,
		DisableIdentity: common.DisableIdentity,
	}
}

// clusterOptions are for the client that keeps a map of slots. Its limits hold
// for each node.
func clusterOptions(cfg Config, common *redis.Options) *redis.ClusterOptions {
	discovery := max(cfg.Timeout, cfg.DialTimeout)
	return &redis.ClusterOptions{
		Addrs:        cfg.Addresses,
		MaxRedirects: maxRedirects,
		// A server that changes its role is asked again soon or not at all.
		MinRetryBackoff: 5 * time.Millisecond,
		MaxRetryBackoff: 5 * time.Millisecond,
		// Routing by the commands' properties would ask every server for them.
		DisableRoutingPolicies: true,

		Username:  common.Username,
		Password:  common.Password,
		TLSConfig: common.TLSConfig,
		Protocol:  common.Protocol,

		DialTimeout:           common.DialTimeout,
		DialerRetries:         common.DialerRetries,
		ContextTimeoutEnabled: common.ContextTimeoutEnabled,
		// The map of slots is fetched in the background, with these timeouts; a
		// decision has a deadline of its own.
		ReadTimeout:  discovery,
		WriteTimeout: discovery,

		PoolTimeout:        common.PoolTimeout,
		PoolSize:           common.PoolSize,
		MaxActiveConns:     common.MaxActiveConns,
		MaxConcurrentDials: common.MaxConcurrentDials,
		PipelinePoolSize:   common.PipelinePoolSize,
		ConnMaxIdleTime:    common.ConnMaxIdleTime,

		MaxRetries:               common.MaxRetries,
		DisableIdentity:          common.DisableIdentity,
		MaintNotificationsConfig: common.MaintNotificationsConfig,
	}
}
