package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Certificates are an authority of this test and what it has signed, in PEM.
type Certificates struct {
	// CA is the authority's certificate.
	CA []byte
	// Client and ClientKey are what a client shows.
	Client, ClientKey []byte

	dir string
	// server and serverKey are what a server on loopback shows.
	server, serverKey []byte
}

// Server returns the certificate of a server on loopback, and its key, in PEM.
func (c *Certificates) Server() (certificate, key []byte) { return c.server, c.serverKey }

// NewCertificates makes an authority, a certificate for servers on loopback and
// one for clients.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	authority := template("authority")
	authority.SubjectKeyId = authority.SerialNumber.Bytes() // tells authorities of one name apart
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	key := newKey(t)
	c := &Certificates{CA: sign(t, authority, authority, key, key), dir: t.TempDir()}

	server, serverKey := template("server"), newKey(t)
	server.IPAddresses, server.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	client, clientKey := template("client"), newKey(t)
	c.Client, c.ClientKey = sign(t, client, authority, clientKey, key), encodeKey(t, clientKey)

	c.write(t, "ca.pem", c.CA)
	c.server, c.serverKey = sign(t, server, authority, serverKey, key), encodeKey(t, serverKey)
	c.write(t, "server.pem", c.server)
	c.write(t, "server-key.pem", c.serverKey)
	return c
}

// Config is TLS for a client that trusts the authority and shows its certificate.
func (c *Certificates) Config(t testing.TB) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(c.Client, c.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// args makes a server listen at port, with TLS unless there are no certificates.
func (c *Certificates) args(port int) []string {
	if c == nil {
		return []string{"--port", strconv.Itoa(port)}
	}
	return []string{
		"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-replication", "yes", "--tls-cluster", "yes",
		"--tls-ca-cert-file", filepath.Join(c.dir, "ca.pem"),
		"--tls-cert-file", filepath.Join(c.dir, "server.pem"),
		"--tls-key-file", filepath.Join(c.dir, "server-key.pem"),
	}
}

// Present has a TLS server show what c's authority signed to clients that come from
// now on, and believe those of the trusted authorities.
func (s *Server) Present(c *Certificates, trusted ...*Certificates) {
	s.t.Helper()
	var authorities []byte
	for _, other := range trusted {
		authorities = append(authorities, other.CA...)
	}
	c.write(s.t, "trusted.pem", authorities)
	s.Do("CONFIG", "SET",
		"tls-ca-cert-file", filepath.Join(c.dir, "trusted.pem"),
		"tls-cert-file", filepath.Join(c.dir, "server.pem"),
		"tls-key-file", filepath.Join(c.dir, "server-key.pem"))
}

func (c *Certificates) write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, certificate, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(t testing.TB, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
