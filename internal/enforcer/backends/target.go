package backends

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// What absent fields of a RedisBackend mean.
const (
	defaultDialTimeout = time.Second
	defaultBudget      = 50 * time.Millisecond
	defaultPoolSize    = 16
)

// Target is a backend as the policies of one namespace use it: where it is, how to
// log in there, and what it means for keys.
type Target struct {
	Name   policy.Name
	Config redisstore.Config
	// Budget is how long one decision may take.
	Budget time.Duration
	// KeyPrefix and HashKey are for policy.Defaults.
	KeyPrefix string
	HashKey   []byte
	// material is what Config.TLS was made of.
	material string
}

// New returns a target without an address, and with defaults for all else.
func New(name policy.Name) *Target {
	return &Target{
		Name:   name,
		Budget: defaultBudget,
		Config: redisstore.Config{DialTimeout: defaultDialTimeout, Timeout: defaultBudget, PoolSize: defaultPoolSize},
	}
}

// Login is a user, who may have no name, and a password. Both empty for no login.
type Login struct{ Username, Password string }

// Material is what TLS needs, in PEM form.
type Material struct {
	// CA are the certificates that a server's must go back to. Defaults to the
	// system's.
	CA []byte
	// Certificate and Key show who connects. Default to none.
	Certificate, Key []byte
}

// Secrets are what a RedisBackend refers to.
type Secrets struct {
	Login    Login
	Sentinel Login
	TLS      Material
	HashKey  []byte
}

// Fault is a field whose Secret can't be used. Its message shows no value.
type Fault struct{ Field, Message string }

// Of returns the target of a valid spec.
func Of(name policy.Name, spec *v1alpha1.RedisBackendSpec, secrets Secrets) (*Target, []Fault) {
	t := New(name)
	t.KeyPrefix, t.HashKey = spec.KeyPrefix, secrets.HashKey
	t.Config.Mode = spec.Mode
	for _, address := range spec.Addresses {
		t.Config.Addresses = append(t.Config.Addresses, string(address))
	}
	if spec.Database != nil {
		t.Config.Database = int(*spec.Database)
	}
	if spec.PoolSize != nil {
		t.Config.PoolSize = int(*spec.PoolSize)
	}
	t.setTimeouts(spec.Timeouts)
	t.Config.Username, t.Config.Password = secrets.Login.Username, secrets.Login.Password
	if spec.Sentinel != nil {
		t.Config.Sentinel = redisstore.Sentinel{
			Master: spec.Sentinel.MasterName, Username: secrets.Sentinel.Username, Password: secrets.Sentinel.Password,
		}
	}
	if spec.TLS == nil {
		return t, nil
	}
	return t, t.secure(spec.TLS, secrets.TLS)
}

// setTimeouts takes over what validation has passed.
func (t *Target) setTimeouts(timeouts *v1alpha1.RedisTimeouts) {
	if timeouts == nil {
		return
	}
	if dial, err := policy.ParseTimeout(timeouts.Dial); err == nil {
		t.Config.DialTimeout = dial
	}
	if decision, err := policy.ParseTimeout(timeouts.Decision); err == nil {
		t.Budget, t.Config.Timeout = decision, decision
	}
}

// secure sets up TLS. Every server's certificate is verified: where the backend
// gives no name, against the host that is dialled.
func (t *Target) secure(spec *v1alpha1.RedisTLS, m Material) (faults []Fault) {
	t.Config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: spec.ServerName}
	if m.CA != nil {
		t.Config.TLS.RootCAs = x509.NewCertPool()
		if !t.Config.TLS.RootCAs.AppendCertsFromPEM(m.CA) {
			faults = append(faults, Fault{"spec.tls", "ca.crt holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----"})
		}
	}
	if ref := spec.CertSecretRef; ref != nil && m.Certificate != nil {
		pair, err := tls.X509KeyPair(m.Certificate, m.Key)
		if err != nil {
			faults = append(faults, Fault{"spec.tls.certSecretRef",
				fmt.Sprintf("tls.crt and tls.key of Secret %s/%s are no certificate and its key in PEM form", t.Name.Namespace, ref.Name)})
		}
		t.Config.TLS.Certificates = []tls.Certificate{pair}
	}
	t.material = strings.Join([]string{spec.ServerName, string(m.CA), string(m.Certificate), string(m.Key)}, "\x00")
	return faults
}

// Identity is equal for targets that can share connections. Secrets are in it as a
// digest only.
func (t *Target) Identity() [sha256.Size]byte {
	c := t.Config
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %q %q %t %q %d %d %d", t.Name, c.Mode, c.Addresses, c.Sentinel, c.Database,
		c.Username, c.Password, c.TLS != nil, t.material, c.DialTimeout, t.Budget, c.PoolSize))
}
