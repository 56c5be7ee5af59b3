package sidecar

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	redistest "github.com/weir-dev/weir/test/redis"
)

// TestManagerIsKnownByFileAndByItsWord checks that either source is enough, and that
// neither takes anything from the other.
func TestManagerIsKnownByFileAndByItsWord(t *testing.T) {
	first, second := redistest.NewCertificates(t), redistest.NewCertificates(t)
	good := filepath.Join(t.TempDir(), "ca.crt")
	bad := filepath.Join(t.TempDir(), "bad.crt")
	for path, content := range map[string][]byte{good: first.CA, bad: []byte("no certificate")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing.crt")
	for name, c := range map[string]struct {
		path string
		told []byte
		want []*redistest.Certificates
	}{
		"the file":               {path: good, want: []*redistest.Certificates{first}},
		"the file and the word":  {path: good, told: second.CA, want: []*redistest.Certificates{first, second}},
		"the word alone":         {path: missing, told: second.CA, want: []*redistest.Certificates{second}},
		"a bad file, the word":   {path: bad, told: second.CA, want: []*redistest.Certificates{second}},
		"the file, a bad word":   {path: good, told: []byte("no certificate"), want: []*redistest.Certificates{first}},
		"nothing":                {path: missing},
		"a bad file":             {path: bad},
		"a bad word and nothing": {path: missing, told: []byte("no certificate")},
	} {
		t.Run(name, func(t *testing.T) {
			a := &authorities{path: c.path, serverName: "weir-manager.weir-system.svc"}
			if c.told != nil {
				a.tell(c.told)
			}
			config, err := a.config()
			if len(c.want) == 0 {
				if err == nil {
					t.Fatal("a manager is believed whatever it shows")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := x509.NewCertPool()
			for _, known := range c.want {
				want.AppendCertsFromPEM(known.CA)
			}
			if !config.RootCAs.Equal(want) || config.ServerName != "weir-manager.weir-system.svc" {
				t.Errorf("trusts other authorities than it should, or for the name %q", config.ServerName)
			}
		})
	}
}
