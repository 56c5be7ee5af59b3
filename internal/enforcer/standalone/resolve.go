package standalone

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// What absent fields of a backend mean.
const (
	defaultBackend     = "default"
	defaultDialTimeout = time.Second
	defaultBudget      = 50 * time.Millisecond
	defaultPoolSize    = 16
)

// connection is all that is needed to use a backend.
type connection struct {
	name      policy.Name
	config    redisstore.Config
	budget    time.Duration
	keyPrefix string
	hashKey   []byte
	identity  string // equal for connections that may share a store
}

// backendOf is the name of a policy's backend.
func backendOf(p *v1alpha1.RateLimitPolicy) policy.Name {
	if p.Spec.RedisRef == nil {
		return policy.Name{Namespace: p.Namespace, Name: defaultBackend}
	}
	name := policy.Name{Namespace: p.Spec.RedisRef.Namespace, Name: p.Spec.RedisRef.Name}
	if name.Namespace == "" {
		name.Namespace = p.Namespace
	}
	return name
}

// Resolve finds the backend of every policy, and says which are not there, not
// permitted or not complete.
func (o *Objects) Resolve() (map[policy.Name]*connection, Problems) {
	connections := map[policy.Name]*connection{}
	byBackend := map[policy.Name]*connection{}
	var problems Problems
	for name, p := range o.Policies {
		wanted := backendOf(p)
		d := o.places[v1alpha1.KindRateLimitPolicy+" "+name.String()]
		backend := o.Backends[wanted]
		if backend == nil {
			problems = append(problems, d.problem("spec.redisRef", fmt.Sprintf(
				"policy %s needs RedisBackend %s, which none of the files holds; known: %s", name, wanted, sortedNames(o.Backends))))
			continue
		}
		if !permits(backend, name.Namespace) {
			problems = append(problems, d.problem("spec.redisRef", fmt.Sprintf(
				"RedisBackend %s does not permit policies of namespace %s: see its allowedNamespaces", wanted, name.Namespace)))
			continue
		}
		if byBackend[wanted] == nil {
			c, err := o.connect(backend)
			if err != nil {
				problem := o.places[v1alpha1.KindRedisBackend+" "+wanted.String()].problem("spec", err.Error())
				if !slices.Contains(problems, problem) {
					problems = append(problems, problem)
				}
				continue
			}
			byBackend[wanted] = c
		}
		connections[name] = byBackend[wanted]
	}
	return connections, problems
}

// permits follows allowedNamespaces. Without a cluster a namespace has one label,
// its name.
func permits(b *v1alpha1.RedisBackend, namespace string) bool {
	allowed := b.Spec.AllowedNamespaces
	switch {
	case b.Namespace == namespace:
		return true
	case allowed == nil:
		return false
	case allowed.From == v1alpha1.NamespacesFromSelector:
		return allowed.Selector.MatchLabels["kubernetes.io/metadata.name"] == namespace && len(allowed.Selector.MatchExpressions) == 0
	}
	return allowed.From == v1alpha1.NamespacesFromAll
}

// connect gathers what a backend's spec refers to.
func (o *Objects) connect(b *v1alpha1.RedisBackend) (*connection, error) {
	name := policy.Name{Namespace: b.Namespace, Name: b.Name}
	if b.Spec.Mode != v1alpha1.RedisStandalone {
		return nil, fmt.Errorf("RedisBackend %s: this version connects to mode Standalone only, not yet to %s", name, b.Spec.Mode)
	}
	c := &connection{name: name, budget: defaultBudget, keyPrefix: b.Spec.KeyPrefix}
	c.config = redisstore.Config{Address: string(b.Spec.Addresses[0]), DialTimeout: defaultDialTimeout, PoolSize: defaultPoolSize}
	if b.Spec.Database != nil {
		c.config.Database = int(*b.Spec.Database)
	}
	if b.Spec.PoolSize != nil {
		c.config.PoolSize = int(*b.Spec.PoolSize)
	}
	if err := c.timeouts(b.Spec.Timeouts); err != nil {
		return nil, fmt.Errorf("RedisBackend %s: %w", name, err)
	}
	material, err := o.credentials(c, b)
	if err != nil {
		return nil, fmt.Errorf("RedisBackend %s: %w", name, err)
	}
	c.identify(material)
	return c, nil
}

func (c *connection) timeouts(t *v1alpha1.RedisTimeouts) (err error) {
	if t == nil {
		return nil
	}
	if t.Dial != "" {
		if c.config.DialTimeout, err = policy.ParseTimeout(t.Dial); err != nil {
			return fmt.Errorf("timeouts.dial: %w", err)
		}
	}
	if t.Decision != "" {
		if c.budget, err = policy.ParseTimeout(t.Decision); err != nil {
			return fmt.Errorf("timeouts.decision: %w", err)
		}
	}
	return nil
}

// identify sums up what distinguishes connections. Secrets go in as a digest.
func (c *connection) identify(material string) {
	sum := sha256.Sum256([]byte(material + "\x00" + c.config.Username + "\x00" + c.config.Password))
	c.config.Timeout = c.budget
	c.identity = fmt.Sprint(c.name, c.config.Address, " ", c.config.Database, c.config.DialTimeout, c.budget, c.config.PoolSize, c.config.TLS != nil, sum)
}

// credentials fills in logins, hash key and TLS, and returns the TLS material.
func (o *Objects) credentials(c *connection, b *v1alpha1.RedisBackend) (string, error) {
	if ref := b.Spec.CredentialsSecretRef; ref != nil {
		secret, err := o.secret(b.Namespace, ref.Name, "password")
		if err != nil {
			return "", err
		}
		c.config.Username, c.config.Password = string(secret["username"]), string(secret["password"])
	}
	if ref := b.Spec.HashKeySecretRef; ref != nil {
		secret, err := o.secret(b.Namespace, ref.Name, "key")
		if err != nil {
			return "", err
		}
		c.hashKey = secret["key"]
	}
	if b.Spec.TLS == nil {
		return "", nil
	}
	return o.tls(c, b)
}

func (o *Objects) secret(namespace, name string, keys ...string) (map[string][]byte, error) {
	secret := o.secrets[policy.Name{Namespace: namespace, Name: name}]
	if secret == nil {
		return nil, fmt.Errorf("it needs Secret %s/%s, which none of the files holds", namespace, name)
	}
	for _, key := range keys {
		if len(secret[key]) == 0 {
			return nil, fmt.Errorf("key %q is missing in Secret %s/%s", key, namespace, name)
		}
	}
	return secret, nil
}

func (o *Objects) tls(c *connection, b *v1alpha1.RedisBackend) (material string, err error) {
	spec := b.Spec.TLS
	c.config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: spec.ServerName}
	if c.config.TLS.ServerName == "" {
		host := c.config.Address[:strings.LastIndexByte(c.config.Address, ':')]
		c.config.TLS.ServerName = strings.Trim(host, "[]")
	}
	ca, err := o.authorities(b)
	if err != nil {
		return "", err
	}
	if ca != nil {
		c.config.TLS.RootCAs = x509.NewCertPool()
		if !c.config.TLS.RootCAs.AppendCertsFromPEM(ca) {
			return "", fmt.Errorf("ca.crt holds no certificate in PEM form")
		}
	}
	material = spec.ServerName + string(ca)
	if spec.CertSecretRef == nil {
		return material, nil
	}
	secret, err := o.secret(b.Namespace, spec.CertSecretRef.Name, "tls.crt", "tls.key")
	if err != nil {
		return "", err
	}
	pair, err := tls.X509KeyPair(secret["tls.crt"], secret["tls.key"])
	if err != nil {
		return "", fmt.Errorf("tls.crt and tls.key of Secret %s/%s are no pair of certificate and key", b.Namespace, spec.CertSecretRef.Name)
	}
	c.config.TLS.Certificates = []tls.Certificate{pair}
	return material + string(secret["tls.crt"]) + string(secret["tls.key"]), nil
}

// authorities are the certificates that the server's must go back to; nil for
// the system's.
func (o *Objects) authorities(b *v1alpha1.RedisBackend) ([]byte, error) {
	if ref := b.Spec.TLS.CASecretRef; ref != nil {
		secret, err := o.secret(b.Namespace, ref.Name, "ca.crt")
		return secret["ca.crt"], err
	}
	if ref := b.Spec.TLS.CAConfigMapRef; ref != nil {
		ca := o.configMaps[policy.Name{Namespace: b.Namespace, Name: ref.Name}]["ca.crt"]
		if len(ca) == 0 {
			return nil, fmt.Errorf("it needs ConfigMap %s/%s with the key ca.crt, which none of the files holds", b.Namespace, ref.Name)
		}
		return ca, nil
	}
	return nil, nil
}

// overriding is the connection that --redis URL stands for.
func overriding(text string) (*connection, error) {
	const mend = "write redis://[user:password@]host:port[/database], rediss:// for TLS, or embedded"
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, fmt.Errorf("--redis: %s", mend)
	}
	c := &connection{name: policy.Name{Namespace: "flags", Name: "redis"}, budget: defaultBudget}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	c.config = redisstore.Config{Address: strings.TrimSuffix(u.Host, ":"+u.Port()) + ":" + port, DialTimeout: defaultDialTimeout, PoolSize: defaultPoolSize}
	if u.User != nil {
		c.config.Username = u.User.Username()
		c.config.Password, _ = u.User.Password()
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		if c.config.Database, err = strconv.Atoi(path); err != nil || c.config.Database < 0 {
			return nil, fmt.Errorf("--redis: %s", mend)
		}
	}
	if u.Scheme == "rediss" {
		c.config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	}
	c.identify("")
	return c, nil
}
