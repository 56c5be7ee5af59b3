package certs

import (
	"bytes"
	"crypto/x509"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

var names = []string{"weir-manager.weir-system.svc", "weir-webhook.weir-system.svc"}

// roots makes a pool of a bundle.
func roots(t *testing.T, bundle []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle holds no certificate")
	}
	return pool
}

// verify checks what is served as a client would who trusts the bundle.
func verify(t *testing.T, chain, bundle []byte, now time.Time) error {
	t.Helper()
	list, err := decode(chain)
	if err != nil {
		t.Fatal(err)
	}
	between := x509.NewCertPool()
	for _, c := range list[1:] {
		between.AddCert(c)
	}
	_, err = list[0].Verify(x509.VerifyOptions{Roots: roots(t, bundle), Intermediates: between, CurrentTime: now, DNSName: names[1]})
	return err
}

// TestEveryBundleOfHalfALifeIsGood goes through years, at looks that are apart by
// anything, and checks what is served against every bundle that was ever handed out
// within half an authority's life, less the time that a look can be late.
func TestEveryBundleOfHalfALifeIsGood(t *testing.T) {
	type handed struct {
		at     time.Time
		bundle []byte
	}
	const longestGap = 20 * 24 * time.Hour
	var ever []handed
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data := map[string][]byte{}
	authorities := map[string]bool{}
	for end := now.AddDate(9, 0, 0); now.Before(end); now = now.Add(rand.N(longestGap)) {
		s := parse(data)
		if _, err := s.advance(now, DefaultLifetimes, names); err != nil {
			t.Fatal(err)
		}
		var err error
		if data, err = s.data(); err != nil {
			t.Fatal(err)
		}
		authorities[string(data[keySigning])] = true
		if len(ever) == 0 || !bytes.Equal(ever[len(ever)-1].bundle, data[keyBundle]) {
			ever = append(ever, handed{now, data[keyBundle]})
		}
		for _, h := range ever {
			// A bundle that was handed out last is one until the next comes.
			if now.Sub(h.at) < DefaultLifetimes.Authority/2-longestGap {
				if err := verify(t, data[keyLeaf], h.bundle, now); err != nil {
					t.Fatalf("%v after the bundle: %v", now.Sub(h.at), err)
				}
			}
		}
		if again, err := parse(data).advance(now, DefaultLifetimes, names); again || err != nil {
			t.Fatalf("a second look at once changes something: %v, %v", again, err)
		}
		if n := bytes.Count(data[keyBundle], []byte("BEGIN")); n > 3 {
			t.Fatalf("%d authorities are trusted at once", n)
		}
	}
	if len(authorities) < 7 {
		t.Errorf("only %d authorities in nine years", len(authorities))
	}
}

// TestDamageIsMended takes parts of the state away, or spoils them.
func TestDamageIsMended(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := parse(nil)
	if _, err := s.advance(now, DefaultLifetimes, names); err != nil {
		t.Fatal(err)
	}
	now = now.Add(DefaultLifetimes.Authority / 2)
	if _, err := s.advance(now, DefaultLifetimes, names); err != nil || s.next == nil {
		t.Fatal("there is no next authority", err)
	}
	whole, err := s.data()
	if err != nil {
		t.Fatal(err)
	}
	for key := range whole {
		for _, spoiled := range [][]byte{nil, []byte("moon"), whole[keyLeaf], whole[keySigningK]} {
			data := maps.Clone(whole)
			data[key] = spoiled
			mended := parse(data)
			if _, err := mended.advance(now, DefaultLifetimes, names); err != nil {
				t.Fatal(err)
			}
			after, err := mended.data()
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(t, after[keyLeaf], after[keyBundle], now); err != nil {
				t.Errorf("%s spoiled: %v", key, err)
			}
			// Those who trusted the bundle before can only go on with the key.
			if key != keySigning && key != keySigningK {
				if err := verify(t, after[keyLeaf], whole[keyBundle], now); err != nil {
					t.Errorf("%s spoiled, and the old bundle is not good any more: %v", key, err)
				}
			}
		}
	}
}

func TestNamesAreFollowed(t *testing.T) {
	now := time.Now()
	s := parse(nil)
	if _, err := s.advance(now, DefaultLifetimes, names[:1]); err != nil {
		t.Fatal(err)
	}
	if changed, err := s.advance(now, DefaultLifetimes, names); err != nil || !changed || s.leaf.VerifyHostname(names[1]) != nil {
		t.Errorf("changed %v, %v; it has the names %v", changed, err, s.leaf.DNSNames)
	}
}

// TestAClockThatWasAheadDoesNoLastingHarm has the clock set back by a month.
func TestAClockThatWasAheadDoesNoLastingHarm(t *testing.T) {
	now := time.Now()
	s := parse(nil)
	for _, at := range []time.Time{now.AddDate(0, 1, 0), now} {
		if _, err := s.advance(at, DefaultLifetimes, names); err != nil {
			t.Fatal(err)
		}
		if err := verify(t, s.chain, s.bundle(), at); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	s := parse(nil)
	if _, err := s.advance(time.Now(), DefaultLifetimes, names); err != nil {
		f.Fatal(err)
	}
	data, err := s.data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[keySigning], data[keySigningK], data[keyLeaf], data[keyBundle])
	f.Fuzz(func(t *testing.T, signing, key, leaf, bundle []byte) {
		s := parse(map[string][]byte{keySigning: signing, keySigningK: key, keyLeaf: leaf, keyLeafKey: data[keyLeafKey], keyBundle: bundle, keyNext: leaf, keyCertified: bundle})
		now := time.Now()
		if _, err := s.advance(now, DefaultLifetimes, names); err != nil {
			return
		}
		if out, err := s.data(); err != nil || verify(t, out[keyLeaf], out[keyBundle], now) != nil {
			t.Error("what is served is not what is trusted", err)
		}
	})
}
