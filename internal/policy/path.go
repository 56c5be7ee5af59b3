package policy

import "strings"

// CleanPath returns the canonical form of a request path, which is for matching
// and keys only: decoded once, dot segments and double slashes folded, path
// parameters (";…") dropped from each segment. Slashes, backslashes, semicolons
// and percent signs that were escaped stay escaped (%2F, %5C, %3B, %25), so the
// form is stable under being cleaned again and no two paths with different
// segments share one. Whatever the input, the result is "*" or begins with "/".
func CleanPath(path string) string {
	if isClean(path) {
		return path
	}
	return string(appendClean(nil, path))
}

// isClean tells that cleaning would not change the path.
func isClean(path string) bool {
	if path == "*" {
		return true
	}
	if path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		switch path[i] {
		case '%', ';':
			return false
		case '/':
			if rest := path[i+1:]; rest != "" && (rest[0] == '/' || startsWithDots(rest)) {
				return false
			}
		}
	}
	return true
}

// startsWithDots tells that the first segment of rest is "." or "..".
func startsWithDots(rest string) bool {
	if rest[0] != '.' {
		return false
	}
	rest = strings.TrimPrefix(rest[1:], ".")
	return rest == "" || rest[0] == '/'
}

// appendClean appends the canonical form of path to dst, in time linear in the
// length of path.
func appendClean(dst []byte, path string) []byte {
	start := len(dst)
	dst = append(dst, '/')
	path = strings.TrimPrefix(path, "/")
	for {
		segment, rest, more := strings.Cut(path, "/")
		segment, _, _ = strings.Cut(segment, ";")
		dst = appendSegment(dst, start, segment, more)
		if !more {
			return dst
		}
		path = rest
	}
}

// appendSegment appends one segment to dst, whose path begins at start and ends
// with a slash, and again ends it with a slash if more follows.
func appendSegment(dst []byte, start int, segment string, more bool) []byte {
	mark := len(dst)
	dst = appendDecoded(dst, segment)
	switch string(dst[mark:]) {
	case "", ".":
		return dst[:mark]
	case "..":
		return dst[:parent(dst[:mark], start)]
	}
	if more {
		dst = append(dst, '/')
	}
	return dst
}

// parent is the length of dst without its last segment. dst ends with a slash.
func parent(dst []byte, start int) int {
	end := len(dst) - 1
	for end > start && dst[end-1] != '/' {
		end--
	}
	return max(end, start+1)
}

// appendDecoded appends a segment, decoded once.
func appendDecoded(dst []byte, segment string) []byte {
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		if c != '%' {
			dst = append(dst, c)
			continue
		}
		decoded, ok := unescape(segment[i:])
		if !ok {
			dst = append(dst, "%25"...)
			continue
		}
		i += 2
		switch decoded {
		case '/', '\\', ';', '%':
			dst = appendEscaped(dst, decoded)
		default:
			dst = append(dst, decoded)
		}
	}
	return dst
}

// unescape reads the escape %XX at the start of s.
func unescape(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	high, ok1 := unhex(s[1])
	low, ok2 := unhex(s[2])
	return high<<4 | low, ok1 && ok2
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends c as %XX.
func appendEscaped(dst []byte, c byte) []byte {
	return append(dst, '%', upperHex[c>>4], upperHex[c&15])
}

// trimSlash drops the slash at the end of a clean path, if there is one.
func trimSlash(path string) string {
	if len(path) > 1 && path[len(path)-1] == '/' {
		return path[:len(path)-1]
	}
	return path
}
