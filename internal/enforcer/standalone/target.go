package standalone

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// Embedded is the Redis in this process, as --redis names it.
const Embedded = "embedded"

// What absent fields of a RedisBackend mean.
const (
	defaultBackend     = "default"
	defaultDialTimeout = time.Second
	defaultBudget      = 50 * time.Millisecond
	defaultPoolSize    = 16
	defaultRedisPort   = "6379"
)

// target is a backend as the policies of one namespace use it: where it is, how
// to log in there, and what it means for keys.
type target struct {
	name      policy.Name
	config    redisstore.Config
	budget    time.Duration
	keyPrefix string
	hashKey   []byte
	// material is what config.TLS was made of.
	material string
}

// identity is equal for targets that can share connections. Secrets are in it as
// a digest only.
func (t *target) identity() [sha256.Size]byte {
	c := t.config
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %q %q %t %q %d %d %d", t.name, c.Mode, c.Addresses, c.Sentinel, c.Database,
		c.Username, c.Password, c.TLS != nil, t.material, c.DialTimeout, t.budget, c.PoolSize))
}

const redisForm = "write redis://host:port, redis://user:password@host:port/database, rediss:// for TLS, or embedded"

// Redis is where --redis sends all policies, whatever their redisRef.
type Redis struct {
	embedded bool
	target   *target
}

// ParseRedis reads a URL, or Embedded. The error never shows the text: there may
// be a password in it.
func ParseRedis(text string) (*Redis, error) {
	if text == Embedded {
		return &Redis{embedded: true}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "redis" && u.Scheme != "rediss":
		return nil, fmt.Errorf("this is no address of a Redis: %s", redisForm)
	case u.Hostname() == "":
		return nil, fmt.Errorf("the host is missing: %s", redisForm)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("remove what follows the database: %s; for more settings write a RedisBackend", redisForm)
	}
	t := newTarget(policy.Name{Namespace: "flags", Name: "redis"})
	port := u.Port()
	if port == "" {
		port = defaultRedisPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("a port is a number from 1 to 65535: %s", redisForm)
	}
	t.config.Addresses = []string{net.JoinHostPort(u.Hostname(), port)}
	if u.User != nil {
		t.config.Username = u.User.Username()
		t.config.Password, _ = u.User.Password()
	}
	if database := strings.TrimPrefix(u.Path, "/"); database != "" {
		if t.config.Database, err = strconv.Atoi(database); err != nil || t.config.Database < 0 {
			return nil, fmt.Errorf("a database is a number, 0 or more: %s", redisForm)
		}
	}
	if u.Scheme == "rediss" {
		t.config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &Redis{target: t}, nil
}

func newTarget(name policy.Name) *target {
	return &target{
		name:   name,
		budget: defaultBudget,
		config: redisstore.Config{DialTimeout: defaultDialTimeout, Timeout: defaultBudget, PoolSize: defaultPoolSize},
	}
}

// embeddedBudget is more than a real Redis is given: what is slow then is this
// machine, which is busy with something else.
const embeddedBudget = time.Second

// embeddedTarget is the target of a Redis in this process.
func embeddedTarget(address string) *target {
	t := newTarget(policy.Name{Namespace: "flags", Name: Embedded})
	t.budget, t.config.Timeout = embeddedBudget, embeddedBudget
	t.config.Addresses = []string{address}
	return t
}

// isLoopback tells that an http.Request's RemoteAddr is on this machine.
func isLoopback(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
