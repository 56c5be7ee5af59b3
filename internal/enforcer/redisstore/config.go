package redisstore

import (
	"crypto/tls"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Config says where a Redis is and how to talk to it.
type Config struct {
	// Mode is how the servers work together. Defaults to Standalone.
	Mode v1alpha1.RedisMode
	// Addresses are host:port of the servers: the one of Standalone, the Sentinels,
	// or some nodes of the Cluster.
	Addresses []string
	// Sentinel says what to ask Sentinels for, and how to log in to them.
	Sentinel Sentinel
	// Database is the number of the logical database; 0 with Cluster.
	Database int
	// Username and Password log in; both empty for no login.
	Username, Password string
	// TLS turns on TLS, towards Sentinels too.
	TLS *tls.Config
	// DialTimeout bounds a new connection. Defaults to one second.
	DialTimeout time.Duration
	// Timeout bounds an exchange whose context has no deadline. Defaults to 50 ms.
	Timeout time.Duration
	// PoolSize is how many connections there are at most. Defaults to 16.
	PoolSize int
	// Now is a monotonic clock. Defaults to the process's.
	Now func() time.Duration
	// Observer learns of every call. Defaults to nobody.
	Observer Observer
}

// Sentinel is what the mode of that name needs beside addresses.
type Sentinel struct {
	// Master is the name of the primary that the Sentinels watch.
	Master string
	// Username and Password log in to the Sentinels; both empty for no login.
	Username, Password string
}

// options sets everything that bounds a call on purpose.
func options(cfg Config, timeout time.Duration) *redis.Options {
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = time.Second
	}
	if cfg.PoolSize == 0 {
		cfg.PoolSize = 16
	}
	return &redis.Options{
		Addr:      cfg.Addresses[0],
		DB:        cfg.Database,
		Username:  cfg.Username,
		Password:  cfg.Password,
		TLSConfig: cfg.TLS,
		// RESP2 has no pushes, and older servers and look-alikes speak it.
		Protocol: 2,
		// A dial is no decision: it goes on when the decision that began it has
		// given up, so that the pool recovers under load.
		DialTimeout:   cfg.DialTimeout,
		DialerRetries: 1,
		// The context's deadline is the budget of a decision and goes before these.
		ContextTimeoutEnabled: true,
		ReadTimeout:           timeout,
		WriteTimeout:          timeout,
		PoolTimeout:           timeout,
		PoolSize:              cfg.PoolSize,
		MaxActiveConns:        cfg.PoolSize,
		MaxConcurrentDials:    cfg.PoolSize,
		ConnMaxIdleTime:       5 * time.Minute,
		// A call that may have been carried out is never repeated.
		MaxRetries: -1,
		// Nothing is sent that counting does not need: a Redis user needs no
		// right for CLIENT.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
