package certs

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Holder has the certificate that is served now. Its zero value has none.
type Holder struct {
	now atomic.Pointer[held]

	mu      sync.Mutex
	changed []func()
}

type held struct {
	certificate *tls.Certificate
	chain, key  []byte
	authorities []byte
}

var errNone = errors.New("there is no certificate yet")

// GetCertificate is for a tls.Config.
func (h *Holder) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := h.now.Load(); now != nil {
		return now.certificate, nil
	}
	return nil, errNone
}

// Authorities are those that clients should trust, in PEM form; nil if that is not
// known.
func (h *Holder) Authorities() []byte {
	if now := h.now.Load(); now != nil {
		return now.authorities
	}
	return nil
}

// End is when the certificate expires, the zero time without one.
func (h *Holder) End() time.Time {
	if now := h.now.Load(); now != nil {
		return now.certificate.Leaf.NotAfter
	}
	return time.Time{}
}

// Ready is an error until there is a certificate.
func (h *Holder) Ready() error {
	if h.now.Load() == nil {
		return errNone
	}
	return nil
}

// OnChange has f called whenever the certificate or the authorities are others.
func (h *Holder) OnChange(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = append(h.changed, f)
}

// set takes up what is to be served. A pair that does not fit changes nothing.
func (h *Holder) set(chain, key, authorities []byte) error {
	before := h.now.Load()
	if before != nil && bytes.Equal(before.chain, chain) && bytes.Equal(before.key, key) && bytes.Equal(before.authorities, authorities) {
		return nil
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return fmt.Errorf("the certificate and its key: %w", err)
	}
	if len(authorities) > 0 {
		if _, err := decode(authorities); err != nil {
			return fmt.Errorf("the authorities: %w", err)
		}
	}
	h.now.Store(&held{&pair, chain, key, authorities})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.changed {
		f()
	}
	return nil
}
