package policy

import "testing"

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
		{"no host", "", nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			wantRules(t, s, &Request{Method: "GET", Path: "/", Host: c.host, Peer: peer}, c.want...)
		})
	}
}
