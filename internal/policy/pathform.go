package policy

import (
	"unicode"
	"unicode/utf8"
)

// pathForms is how many values a pathForm can have.
const pathForms = 4

// pathForm is how a policy reads paths.
type pathForm struct {
	foldCase, strictSlash bool
}

// index numbers the forms from 0.
func (f pathForm) index() int {
	i := 0
	if f.foldCase {
		i++
	}
	if f.strictSlash {
		i += 2
	}
	return i
}

// apply brings a clean path into the form.
func (f pathForm) apply(clean string) string {
	if !f.strictSlash {
		clean = trimSlash(clean)
	}
	if f.foldCase && mayFold(clean) {
		clean = string(appendFolded(nil, clean))
	}
	return clean
}

// appendFolded appends a clean path without the difference between capitals and
// small letters. Escapes keep their capitals, and bytes that are not UTF-8 stay
// as they are.
func appendFolded(dst []byte, clean string) []byte {
	for i := 0; i < len(clean); {
		size := 1
		switch c := clean[i]; {
		case c == '%' && i+3 <= len(clean):
			size = 3
			dst = append(dst, clean[i:i+size]...)
		case c < utf8.RuneSelf:
			dst = append(dst, lowerASCII(c))
		default:
			var r rune
			if r, size = utf8.DecodeRuneInString(clean[i:]); r == utf8.RuneError && size == 1 {
				dst = append(dst, c)
			} else {
				dst = utf8.AppendRune(dst, foldRune(r))
			}
		}
		i += size
	}
	return dst
}

// foldRune maps all runes that differ by case only to one of them. Lower case
// alone would not do: K and the Kelvin sign, or s and ſ, are one letter to many
// applications.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return unicode.ToLower(least)
}

// mayFold tells that appendFolded may change s.
func mayFold(s string) bool {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
