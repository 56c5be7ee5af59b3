package policy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"unsafe"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// maxLiteral is how many bytes of a value are readable in a key; longer ones are
// stored as a digest.
const maxLiteral = 64

// digestLength is how many base32 characters of a digest a key holds: 130 bits.
const digestLength = 26

// digestEncoding is base32 in small letters, which is easier to read aloud.
var digestEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// The forms that no literal can take, because "=" and quotes are always escaped
// in one.
const (
	fallbackForm = "ip="   // the caller's address stands in for a missing part
	sharedForm   = "none=" // all callers without the part
	emptyForm    = `""`    // the part has no text, such as the host of an HTTP/1.0 request
)

// keyPart is one compiled part of a key.
type keyPart struct {
	kind      v1alpha1.KeyPartType
	name      string // canonical for headers
	index     int
	onMissing v1alpha1.OnMissing
	proxies   bool // read from trusted peers only
	hash      bool
}

// compileKeyPart applies the defaults of a valid part.
func compileKeyPart(p *v1alpha1.KeyPart) keyPart {
	part := keyPart{
		kind:      p.Type,
		name:      p.Name,
		onMissing: p.OnMissing,
		proxies:   p.TrustedFrom == v1alpha1.TrustedFromProxies,
		hash:      p.Hash || isSensitive(p.Type, p.Name),
	}
	if p.Type == v1alpha1.KeyHeader {
		part.name = canonicalHeader(p.Name)
	}
	if p.Index != nil {
		part.index = int(*p.Index)
	}
	if part.onMissing == "" {
		part.onMissing = v1alpha1.OnMissingClientIP
	}
	return part
}

// isSensitive tells that values of this name usually are secrets, which must not
// be readable in Redis. A cookie always may be a session.
func isSensitive(kind v1alpha1.KeyPartType, name string) bool {
	name = strings.ToLower(name)
	switch kind {
	case v1alpha1.KeyCookie:
		return true
	case v1alpha1.KeyHeader, v1alpha1.KeyQueryParam, v1alpha1.KeyDescriptor:
		name = strings.TrimPrefix(name, attributeHeader)
		return slices.Contains(sensitiveNames, name) || strings.HasSuffix(name, "-api-key") || strings.HasSuffix(name, "-token")
	}
	return false
}

// sensitiveNames are headers and query parameters that carry secrets.
var sensitiveNames = []string{
	"authorization", "proxy-authorization", "cookie", "api-key",
	"api_key", "key", "token", "access_token",
}

// appendValue appends a part's value in the form that stands in a key.
func appendValue(dst []byte, value string, hash bool, hashKey []byte) []byte {
	switch {
	case value == "":
		return append(dst, emptyForm...)
	case hash || len(value) > maxLiteral:
		return appendDigest(dst, value, hashKey)
	}
	return appendLiteral(dst, value)
}

// appendLiteral escapes everything outside of [A-Za-z0-9._~@+-].
func appendLiteral(dst []byte, value string) []byte {
	for i := range len(value) {
		if c := value[i]; isLiteral[c] {
			dst = append(dst, c)
		} else {
			dst = appendEscaped(dst, c)
		}
	}
	return dst
}

var isLiteral = func() (table [256]bool) {
	for c := range table {
		b := byte(c)
		table[c] = 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9' || strings.IndexByte("._~@+-", b) >= 0
	}
	return table
}()

// appendDigest appends "#" and the start of the value's SHA-256, or of its HMAC
// where there is a key.
func appendDigest(dst []byte, value string, hashKey []byte) []byte {
	sum := digestOf(value, hashKey)
	var text [52]byte
	digestEncoding.Encode(text[:], sum[:])
	dst = append(dst, '#')
	return append(dst, text[:digestLength]...)
}

func digestOf(value string, hashKey []byte) [sha256.Size]byte {
	if len(hashKey) == 0 {
		return sha256.Sum256(bytesOf(value))
	}
	mac := hmac.New(sha256.New, hashKey)
	_, _ = mac.Write(bytesOf(value)) // never fails
	return [sha256.Size]byte(mac.Sum(nil))
}

// bytesOf reads a string as bytes without a copy; nobody may write to them.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// textOf reads bytes as a string without a copy, which holds until the bytes are
// written to.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
