package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The keys of the Secret. The first three are named as everywhere, so that others
// can use them, too.
const (
	keyBundle    = "ca.crt"
	keyLeaf      = corev1.TLSCertKey
	keyLeafKey   = corev1.TLSPrivateKeyKey
	keySigning   = "signing.crt"
	keySigningK  = "signing.key"
	keyCertified = "certified.crt"
	keyNext      = "next.crt"
	keyNextKey   = "next.key"
)

// state is what the Secret holds.
type state struct {
	signing *signer
	// certified is the signing authority as its predecessor certified it. nil for
	// the first.
	certified *x509.Certificate
	// next is published and signs nothing yet. nil for most of the time.
	next *signer
	// old are former authorities that are still trusted.
	old []*x509.Certificate

	leaf    *x509.Certificate
	chain   []byte // in PEM form, the leaf first
	leafKey []byte
}

// parse reads a Secret's data. What can't be read is as if it were not there, and
// Advance makes it anew.
func parse(data map[string][]byte) *state {
	s := &state{}
	s.signing, _ = decodeSigner(data[keySigning], data[keySigningK])
	s.next, _ = decodeSigner(data[keyNext], data[keyNextKey])
	if list, err := decode(data[keyCertified]); err == nil {
		s.certified = list[0]
	}
	if pair, err := tls.X509KeyPair(data[keyLeaf], data[keyLeafKey]); err == nil {
		s.leaf, s.chain, s.leafKey = pair.Leaf, data[keyLeaf], data[keyLeafKey]
	}
	trusted, _ := decode(data[keyBundle])
	for _, c := range trusted {
		if c.IsCA && !s.signing.is(c) && !s.next.is(c) {
			s.old = append(s.old, c)
		}
	}
	return s
}

func (s *signer) is(c *x509.Certificate) bool { return s != nil && s.certificate.Equal(c) }

// advance brings the state up to date, and tells whether it is another one now.
func (s *state) advance(now time.Time, l Lifetimes, names []string) (changed bool, err error) {
	before := len(s.old)
	s.old = slices.DeleteFunc(s.old, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
	changed = len(s.old) != before
	for _, step := range []func(time.Time, Lifetimes) (bool, error){s.begin, s.publish, s.turn} {
		did, err := step(now, l)
		if err != nil {
			return false, err
		}
		changed = changed || did
	}
	did, err := s.serve(now, l, names)
	return changed || did, err
}

// good tells whether a certificate can be used now.
func good(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && now.Before(c.NotAfter)
}

// begin makes the first authority, also in place of one that can't be used now.
func (s *state) begin(now time.Time, l Lifetimes) (bool, error) {
	if s.signing != nil && good(s.signing.certificate, now) {
		return false, nil
	}
	signing, err := newSigner(now, l.Authority)
	if err != nil {
		return false, err
	}
	s.signing, s.certified, s.next = signing, nil, nil
	return true, nil
}

// publish makes the next authority at half the life of this one.
func (s *state) publish(now time.Time, l Lifetimes) (bool, error) {
	end := s.signing.certificate.NotAfter
	if s.next != nil || now.Before(end.Add(-end.Sub(s.signing.made())/2)) {
		return false, nil
	}
	next, err := newSigner(now, l.Authority)
	if err != nil {
		return false, err
	}
	s.next = next
	return true, nil
}

// turn has the next authority sign once it has been known for long enough.
func (s *state) turn(now time.Time, l Lifetimes) (bool, error) {
	if s.next == nil || now.Before(s.next.made().Add(l.Published)) {
		return false, nil
	}
	certified, err := s.signing.certify(s.next)
	if err != nil {
		return false, err
	}
	s.old = append([]*x509.Certificate{s.signing.certificate}, s.old...)
	s.signing, s.certified, s.next = s.next, certified, nil
	return true, nil
}

// serve makes a leaf where there is none that the signing authority made, that has
// these names and a third of its life before it.
func (s *state) serve(now time.Time, l Lifetimes, names []string) (bool, error) {
	if c := s.leaf; c != nil && c.CheckSignatureFrom(s.signing.certificate) == nil && slices.Equal(c.DNSNames, names) && good(c, now) &&
		now.Before(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore)/3)) {
		return false, nil
	}
	leaf, key, err := s.signing.leaf(now, l.Leaf, names)
	if err != nil {
		return false, err
	}
	if s.leafKey, err = encodeKey(key); err != nil {
		return false, err
	}
	s.leaf, s.chain = leaf, encode(leaf)
	if s.certified != nil {
		s.chain = append(s.chain, encode(s.certified)...)
	}
	return true, nil
}

// bundle are the authorities to trust, the signing one first.
func (s *state) bundle() []byte {
	list := []*x509.Certificate{s.signing.certificate}
	if s.next != nil {
		list = append(list, s.next.certificate)
	}
	return encode(append(list, s.old...)...)
}

// data is the state as a Secret's.
func (s *state) data() (map[string][]byte, error) {
	signingKey, err := encodeKey(s.signing.key)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{
		keyBundle: s.bundle(), keyLeaf: bytes.Clone(s.chain), keyLeafKey: bytes.Clone(s.leafKey),
		keySigning: encode(s.signing.certificate), keySigningK: signingKey,
	}
	if s.certified != nil {
		data[keyCertified] = encode(s.certified)
	}
	if s.next != nil {
		data[keyNext] = encode(s.next.certificate)
		if data[keyNextKey], err = encodeKey(s.next.key); err != nil {
			return nil, err
		}
	}
	return data, nil
}
