package policy

import "testing"

func TestSpellingsOfAHostAreOneHost(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"shop.example.com":           "shop.example.com",
		"SHOP.Example.com":           "shop.example.com",
		"shop.example.com:8080":      "shop.example.com",
		"shop.example.com:":          "shop.example.com",
		"shop.example.com.":          "shop.example.com",
		"shop.example.com.:443":      "shop.example.com",
		"shop.example.com..":         "shop.example.com",
		"shop.example.com:80:80":     "shop.example.com",
		"192.0.2.1:80":               "192.0.2.1",
		"[::1]":                      "[::1]",
		"[::1]:8080":                 "[::1]",
		"[0:0:0:0:0:0:0:1]:80":       "[::1]",
		"[2001:DB8::0001]":           "[2001:db8::1]",
		"[fe80::1%25eth0]:80":        "[fe80::1]",
		"2001:db8::1":                "[2001:db8::1]",
		"[nonsense":                  "[nonsense",
		"[nonsense]:80":              "[nonsense]",
		"xn--bcher-kva.example":      "xn--bcher-kva.example",
		"b\xc3\x9ccher.example\x00A": "b\xc3\x9ccher.example\x00a",
	} {
		if got := CleanHost(in); got != want {
			t.Errorf("CleanHost(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestHostsMatch(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  selector: {}
  rules:
  - {name: exact, limit: 1, window: 1s, match: {hosts: [shop.example.com, "[0:0:0:0:0:0:0:1]"]}}
  - {name: wild, limit: 1, window: 1s, match: {hosts: ["*.example.com"]}}
  - {name: deep, limit: 1, window: 1s, match: {hosts: ["*.a.b.example.com"]}}
`)})
	for _, c := range []struct {
		reason, host string
		want         []string
	}{
		{"an exact host is also one of a wildcard", "shop.example.com", []string{"exact", "wild"}},
		{"one label", "x.example.com", []string{"wild"}},
		{"many labels", "z.y.x.example.com", []string{"wild"}},
		{"two wildcards", "x.a.b.example.com:80", []string{"wild", "deep"}},
		{"no label", "example.com", nil},
		{"an empty label", ".example.com", nil},
		{"another domain that ends alike", "notexample.com", nil},
		{"an IPv6 address in another spelling", "[::0001]:80", []string{"exact"}},
		{"no host", "", nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			wantRules(t, s, &Request{Method: "GET", Path: "/", Host: c.host, Peer: peer}, c.want...)
		})
	}
}
