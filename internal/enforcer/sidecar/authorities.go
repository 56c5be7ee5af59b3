package sidecar

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
)

// authorities are those by which the manager is known: the ones of a file and the
// ones that it named on a stream last. So the file may be old, and the manager may
// change its authorities, as long as not both happen while no stream lives.
type authorities struct {
	path, serverName string
	told             atomic.Pointer[[]byte]
}

// tell takes up what a manager says, in PEM form.
func (a *authorities) tell(certificates []byte) { a.told.Store(&certificates) }

// config is for a connection that is made now.
func (a *authorities) config() (*tls.Config, error) {
	roots := x509.NewCertPool()
	told := a.told.Load()
	if told != nil && !roots.AppendCertsFromPEM(*told) {
		told = nil
	}
	file, err := os.ReadFile(a.path)
	switch {
	case err != nil && told == nil:
		return nil, fmt.Errorf("the manager's authorities: %w", err)
	case err == nil && !roots.AppendCertsFromPEM(file) && told == nil:
		return nil, fmt.Errorf("%s holds no certificate in PEM form", a.path)
	}
	return &tls.Config{RootCAs: roots, ServerName: a.serverName, MinVersion: tls.VersionTLS13}, nil
}
