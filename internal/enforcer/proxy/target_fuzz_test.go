package proxy

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// FuzzTarget sends any request line through the way of a target. What is passed on
// is what came, after the scheme and host of an absolute form.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{"/", "*", "//a/b?c", "/a;b?x=1;y=%zz#c", "http://h//a?b", "http://h?b", "//a|b", "/%2F\xff"} {
		f.Add(target, true)
		f.Add(target, false)
	}
	f.Fuzz(func(t *testing.T, target string, http2 bool) {
		in, err := http.ReadRequest(bufio.NewReader(strings.NewReader("OPTIONS " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil || !passableHost(in.Host) || !passableTarget(in, http2) {
			return
		}
		want, _ := originForm(in)
		if want != "*" && !strings.HasPrefix(want, "/") || !strings.HasSuffix(target, strings.TrimPrefix(strings.TrimPrefix(want, "*"), "/")) {
			t.Fatalf("%q became %q", target, want)
		}
		out := *in.URL
		out.Scheme, out.Host = "http", "127.0.0.1:8080"
		setTarget(&out, want, in.Host, http2)
		// net/http cuts scheme and host off for HTTP/2.
		got := out.RequestURI()
		if http2 {
			got = strings.TrimPrefix(got, "http://"+in.Host)
		}
		if got != want {
			t.Errorf("%q is passed on as %q, want %q", target, got, want)
		}
	})
}
