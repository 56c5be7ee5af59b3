package standalone

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
)

// Embedded is the Redis in this process, as --redis names it.
const Embedded = "embedded"

const defaultRedisPort = "6379"

const redisForm = "write redis://host:port, redis://user:password@host:port/database, rediss:// for TLS, or embedded"

// Redis is where --redis sends all policies, whatever their redisRef.
type Redis struct {
	embedded bool
	target   *backends.Target
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
	t := backends.New(policy.Name{Namespace: "flags", Name: "redis"})
	port := u.Port()
	if port == "" {
		port = defaultRedisPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("a port is a number from 1 to 65535: %s", redisForm)
	}
	t.Config.Addresses = []string{net.JoinHostPort(u.Hostname(), port)}
	if u.User != nil {
		t.Config.Username = u.User.Username()
		t.Config.Password, _ = u.User.Password()
	}
	if database := strings.TrimPrefix(u.Path, "/"); database != "" {
		if t.Config.Database, err = strconv.Atoi(database); err != nil || t.Config.Database < 0 {
			return nil, fmt.Errorf("a database is a number, 0 or more: %s", redisForm)
		}
	}
	if u.Scheme == "rediss" {
		t.Config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &Redis{target: t}, nil
}

// embeddedBudget is more than a real Redis is given: what is slow then is this
// machine, which is busy with something else.
const embeddedBudget = time.Second

// embeddedTarget is the target of a Redis in this process.
func embeddedTarget(address string) *backends.Target {
	t := backends.New(policy.Name{Namespace: "flags", Name: Embedded})
	t.Budget, t.Config.Timeout = embeddedBudget, embeddedBudget
	t.Config.Addresses = []string{address}
	return t
}
