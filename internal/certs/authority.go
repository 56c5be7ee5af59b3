package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Lifetimes are how long certificates are good for.
type Lifetimes struct {
	// Authority is an authority's. The next one is published at half of it.
	Authority time.Duration
	// Published is how long an authority is known before it signs.
	Published time.Duration
	// Leaf is that of what is served. A new one is made at two thirds of it.
	Leaf time.Duration
}

// DefaultLifetimes suit pods that live for up to a year, and replicas that look
// after their certificate every few seconds.
var DefaultLifetimes = Lifetimes{Authority: 2 * 365 * 24 * time.Hour, Published: 24 * time.Hour, Leaf: 90 * 24 * time.Hour}

// backdated is for clocks that are behind.
const backdated = 5 * time.Minute

// signer is an authority that can sign.
type signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// made is when an authority came into being.
func (s *signer) made() time.Time { return s.certificate.NotBefore.Add(backdated) }

func newSigner(now time.Time, life time.Duration) (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	mark := make([]byte, 4)
	_, _ = rand.Read(mark) // it never fails
	template := &x509.Certificate{
		// The names differ: that is how one authority is told from the next.
		Subject:   pkix.Name{CommonName: "Weir authority " + now.UTC().Format(time.DateOnly) + " " + hex.EncodeToString(mark)},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &signer{certificate, key}, nil
}

// certify has an authority vouch for another one, for as long as both are good.
func (s *signer) certify(other *signer) (*x509.Certificate, error) {
	template := *other.certificate
	template.SerialNumber, template.AuthorityKeyId = nil, nil
	template.MaxPathLen, template.MaxPathLenZero = 0, true
	template.NotAfter = earliest(template.NotAfter, s.certificate.NotAfter)
	return sign(&template, s.certificate, other.key.Public(), s.key)
}

// leaf makes a certificate for servers of these DNS names, with its key.
func (s *signer) leaf(now time.Time, life time.Duration, names []string) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Weir manager"},
		DNSNames:  names,
		NotBefore: now.Add(-backdated), NotAfter: earliest(now.Add(life), s.certificate.NotAfter),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := sign(template, s.certificate, key.Public(), s.key)
	return certificate, key, err
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func encode(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

var errNoCertificate = errors.New("there is no certificate")

// decode reads certificates in PEM form, at least one.
func decode(text []byte) (list []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errNoCertificate
	}
	return list, nil
}

// decodeSigner reads an authority and its key, which must fit.
func decodeSigner(certificate, key []byte) (*signer, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	private, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("this is no authority")
	}
	return &signer{pair.Leaf, private}, nil
}
