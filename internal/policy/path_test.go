package policy

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// counts tells that a rule with this path matcher counts a request.
func counts(t *testing.T, options, match, path string) bool {
	t.Helper()
	s := NewSet([]*Policy{compileYAML(t, "p", "  selector: {}\n  request: "+options+"\n  rules: [{name: r, limit: 1, window: 1s, match: {paths: ["+match+"]}}]\n")})
	return len(keysOf(t, s, &Request{Method: "GET", Path: path, Peer: peer})) == 1
}

func TestSpellingsOfAPathAreOnePath(t *testing.T) {
	const exact = "{type: Exact, value: /api/login}"
	for _, c := range []struct {
		reason, options, match, path string
		want                         bool
	}{
		{"the path itself", "{}", exact, "/api/login", true},
		{"a double slash", "{}", exact, "/api//login", true},
		{"slashes in front", "{}", exact, "///api/login", true},
		{"a dot segment", "{}", exact, "/api/./login", true},
		{"a dot segment at the end", "{}", exact, "/api/login/.", true},
		{"a slash at the end", "{}", exact, "/api/login/", true},
		{"a slash at the end that matters", "{trailingSlash: Strict}", exact, "/api/login/", false},
		{"a dot segment that leaves a slash that matters", "{trailingSlash: Strict}", exact, "/api/login/.", false},
		{"a needless escape", "{}", exact, "/api/%6Cogin", true},
		{"a needless escape in small letters", "{}", exact, "/api/%6cogin", true},
		{"a way up", "{}", exact, "/x/../api/login", true},
		{"an escaped way up", "{}", exact, "/x/%2e%2E/api/login", true},
		{"a way up with a parameter", "{}", exact, "/x/..;a=b/api/login", true},
		{"more ways up than there are segments", "{}", exact, "/../../api/login", true},
		{"parameters", "{}", exact, "/api;v=1/login;jsessionid=2", true},
		{"a segment of a parameter only", "{}", exact, "/api/;x/login", true},
		{"other letters' case", "{}", exact, "/API/login", false},
		{"other letters' case that does not matter", "{pathCase: Insensitive}", exact, "/API/lOgin", true},
		{"escaped letters of other case", "{pathCase: Insensitive}", exact, "/%41PI/login", true},
		{"an escaped slash is not a slash", "{}", exact, "/api%2Flogin", false},
		{"an escaped backslash is not a slash", "{}", exact, "/api%5Clogin", false},
		{"an escape is decoded once", "{}", exact, "/api/%256Cogin", false},
		{"an escaped semicolon begins no parameter", "{}", exact, "/api/login%3Bx", false},
		{"an escaped slash in the policy", "{}", "{type: Exact, value: /a%2fb}", "/a%2Fb", true},
		{"an escaped slash in the policy whatever the case", "{pathCase: Insensitive}", "{type: Exact, value: /a%2Fb}", "/A%2fB", true},
		{"the policy's path is cleaned too", "{}", "{type: Exact, value: /a/./b;c//d/}", "/a/b/d", true},
		{"a prefix is below", "{}", "{type: Prefix, value: /api}", "/api/x/y", true},
		{"a prefix is itself", "{}", "{type: Prefix, value: /api/}", "/api", true},
		{"a prefix is itself where slashes matter", "{trailingSlash: Strict}", "{type: Prefix, value: /api/}", "/api/", true},
		{"a prefix is not half a segment", "{}", "{type: Prefix, value: /api}", "/apis", false},
		{"a prefix is not left by a way up", "{}", "{type: Prefix, value: /api}", "/api/../admin", false},
		{"a prefix is reached by a way up", "{}", "{type: Prefix, value: /admin}", "/api/../admin/x", true},
		{"the root is a prefix of all", "{}", "{type: Prefix, value: /}", "/x", true},
		{"an expression holds for the whole path", "{}", "{type: RegularExpression, value: '/v[0-9]+'}", "/v1/x", false},
		{"an expression with choices is anchored as a whole", "{}", "{type: RegularExpression, value: '/a|/b'}", "/a/x", false},
		{"an expression sees the clean path", "{}", "{type: RegularExpression, value: '/v[0-9]+'}", "/x/../v%31/", true},
		{"an expression without case", "{pathCase: Insensitive}", "{type: RegularExpression, value: '/V[0-9]+/A'}", "/v1/a", true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := counts(t, c.options, c.match, c.path); got != c.want {
				t.Errorf("path %q is counted: %v, want %v", c.path, got, c.want)
			}
		})
	}
}

func TestCleanPathIsStable(t *testing.T) {
	pieces := []string{"/", "/", ".", "..", ";", "a", "B", "%", "%2F", "%2e", "%5c", "%3B", "%25", "%zz", "%C3%89", "É", "\x00", "\xff", "\\", "?", "#", "%"}
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(t, "pieces"), "")
		clean := CleanPath(path)
		if again := CleanPath(clean); again != clean {
			t.Fatalf("%q is cleaned to %q, and that to %q", path, clean, again)
		}
		if clean != "*" && !strings.HasPrefix(clean, "/") || strings.Contains(clean, "//") || strings.Contains(clean, ";") {
			t.Fatalf("%q is cleaned to %q", path, clean)
		}
		for segment := range strings.SplitSeq(clean, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q is cleaned to %q", path, clean)
			}
		}
		for i := range pathForms {
			form := pathForm{foldCase: i&1 > 0, strictSlash: i&2 > 0}
			formed := form.apply(clean)
			if again := form.apply(CleanPath(formed)); again != formed {
				t.Fatalf("form %+v of %q is %q, and that of it %q", form, path, formed, again)
			}
		}
	})
}

func TestLongPathsAreCleanedWhole(t *testing.T) {
	for _, c := range []struct{ reason, path, want string }{
		{"thousands of segments", strings.Repeat("/a/./b//", 8192), strings.Repeat("/a/b", 8192) + "/"},
		{"down and up again", strings.Repeat("/a", 16384) + strings.Repeat("/..", 16384) + "/end", "/end"},
		{"escapes", "/" + strings.Repeat("%41", 20000), "/" + strings.Repeat("A", 20000)},
		{"broken escapes", "/" + strings.Repeat("%", 20000), "/" + strings.Repeat("%25", 20000)},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := CleanPath(c.path); got != c.want {
				t.Errorf("%d bytes are cleaned to %d, want %d", len(c.path), len(got), len(c.want))
			}
		})
	}
}

func TestLettersThatDifferByCaseFoldAlike(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		folded := foldRune(r)
		if again := foldRune(folded); again != folded {
			t.Errorf("%U folds to %U, and that to %U", r, folded, again)
		}
		if other := foldRune(unicode.SimpleFold(r)); other != folded {
			t.Errorf("%U folds to %U, but %U to %U", r, folded, unicode.SimpleFold(r), other)
		}
	}
	for upper, lower := range map[string]string{"/É": "/é", "/K": "/k", "/ſ": "/s", "/A%2Fß": "/a%2Fẞ", "/\xffA": "/\xffa"} {
		form := pathForm{foldCase: true}
		if form.apply(upper) != form.apply(lower) {
			t.Errorf("%q and %q are told apart", upper, lower)
		}
	}
}
