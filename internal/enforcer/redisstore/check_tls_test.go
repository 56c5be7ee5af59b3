package redisstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	redistest "github.com/weir-dev/weir/test/redis"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	template := certificateOf("authority", time.Hour)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	signed, key := issue(t, template, authority{certificate: template})
	return authority{signed.Leaf, key}
}

// sign issues a certificate for hosts, which runs out after a time.
func (a authority) sign(t *testing.T, lasts time.Duration, usage x509.ExtKeyUsage, hosts ...string) tls.Certificate {
	t.Helper()
	template := certificateOf("server", lasts)
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	if usage == x509.ExtKeyUsageServerAuth {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth) // of other servers
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	signed, _ := issue(t, template, a)
	return signed
}

// trust is TLS for whoever trusts the authority.
func (a authority) trust() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}

func certificateOf(name string, lasts time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(lasts),
	}
}

// issue signs with the key of a, or with the new one if a has none.
func issue(t *testing.T, template *x509.Certificate, a authority) (tls.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if a.key == nil {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, key
}

// behindTLS is the address of an end of TLS in front of a server.
func behindTLS(t *testing.T, server string, config *tls.Config) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, server)
		}
	}()
	return listener.Addr().String()
}

func forward(client net.Conn, server string) {
	defer func() { _ = client.Close() }()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(conn, client)
		_ = conn.Close()
	}()
	_, _ = io.Copy(client, conn)
}

func TestCheckNamesTheFaultOfTLS(t *testing.T) {
	server := redistest.Start(t)
	own, other := newAuthority(t), newAuthority(t)
	good := own.sign(t, time.Hour, x509.ExtKeyUsageServerAuth, "127.0.0.1")
	client := own.sign(t, time.Hour, x509.ExtKeyUsageClientAuth)
	stranger := other.sign(t, time.Hour, x509.ExtKeyUsageClientAuth)
	asking := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: own.trust().RootCAs}
	showing := func(certificate tls.Certificate) *tls.Config {
		c := own.trust()
		c.Certificates = []tls.Certificate{certificate}
		return c
	}
	named := own.trust()
	named.ServerName = "redis.example.com"
	with := func(certificates ...tls.Certificate) *tls.Config {
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificates}
	}
	old := with(good)
	old.MaxVersion, old.MinVersion = tls.VersionTLS11, tls.VersionTLS10
	for name, test := range map[string]struct {
		server  *tls.Config // nil for none
		client  *tls.Config
		want    Fault
		message string
	}{
		"all is well":                               {with(good), own.trust(), "", "primary"},
		"a name that is set":                        {with(own.sign(t, time.Hour, x509.ExtKeyUsageServerAuth, "redis.example.com")), named, "", "primary"},
		"a certificate of a client":                 {asking, showing(client), "", "primary"},
		"an unknown authority":                      {with(good), other.trust(), FaultTLSUnknownAuthority, "an authority that is not trusted: put the certificate of that authority into ca.crt"},
		"the system's authorities":                  {with(good), &tls.Config{MinVersion: tls.VersionTLS12}, FaultTLSUnknownAuthority, "ca.crt"},
		"a name for an address":                     {with(own.sign(t, time.Hour, x509.ExtKeyUsageServerAuth, "redis.example.com")), own.trust(), FaultTLSNameMismatch, "set tls.serverName"},
		"another name":                              {with(own.sign(t, time.Hour, x509.ExtKeyUsageServerAuth, "other.example.com")), named, FaultTLSNameMismatch, "set tls.serverName"},
		"an expired certificate":                    {with(own.sign(t, -time.Hour, x509.ExtKeyUsageServerAuth, "127.0.0.1")), own.trust(), FaultTLSExpired, "has expired, or is not valid yet"},
		"a certificate for clients":                 {with(own.sign(t, time.Hour, x509.ExtKeyUsageClientAuth, "127.0.0.1")), own.trust(), FaultTLSUnsuited, "is not one for a server"},
		"no certificate of a client":                {asking, own.trust(), FaultTLSClientCertificate, "name a Secret with tls.crt and tls.key in tls.certSecretRef"},
		"a stranger's certificate":                  {asking, showing(stranger), FaultTLSClientNotAccepted, "does not accept the certificate of tls.certSecretRef"},
		"old TLS":                                   {old, own.trust(), FaultTLSHandshake, "TLS 1.2 or newer"},
		"TLS is not spoken":                         {nil, own.trust(), FaultTLSNotSpoken, "does not speak TLS"},
		"TLS is spoken, and is not expected":        {with(good), nil, FaultTLSRequired, "wants TLS: set tls"},
		"a certificate too is, and is not expected": {asking, nil, FaultTLSRequired, "wants TLS: set tls"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := at(server.Addr())
			if test.server != nil {
				cfg = at(behindTLS(t, server.Addr(), test.server))
			}
			cfg.TLS = test.client
			if test.want == FaultTLSNotSpoken {
				cfg.DialTimeout = 500 * time.Millisecond // the server waits for more
			}
			mustFind(t, cfg, shop, test.want, test.message)
		})
	}
}
