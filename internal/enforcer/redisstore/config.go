package redisstore

import (
	"crypto/tls"
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
	// TLS turns on TLS, towards Sentinels too. Where it has a ServerName every
	// certificate must hold that; otherwise each must hold the host that was
	// dialled for it.
	TLS *tls.Config
	// DialTimeout bounds a new connection. Defaults to one second.
	DialTimeout time.Duration
	// Timeout bounds an exchange whose context has no deadline. Defaults to 50 ms.
	Timeout time.Duration
	// PoolSize is how many connections to one server there are at most. Defaults
	// to 16.
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

// What absent settings mean.
const (
	defaultTimeout     = 50 * time.Millisecond
	defaultDialTimeout = time.Second
	defaultPoolSize    = 16
)

// withDefaults fills in what is absent.
func (cfg Config) withDefaults() Config {
	if cfg.Mode == "" {
		cfg.Mode = v1alpha1.RedisStandalone
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = defaultDialTimeout
	}
	if cfg.PoolSize == 0 {
		cfg.PoolSize = defaultPoolSize
	}
	return cfg
}
