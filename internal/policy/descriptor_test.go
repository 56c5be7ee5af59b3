package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// descriptors makes descriptors of texts such as "user=a,tier=gold".
func descriptors(texts ...string) []Descriptor {
	var all []Descriptor
	for _, text := range texts {
		var d Descriptor
		for entry := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, DescriptorEntry{Key: key, Value: value})
		}
		all = append(all, d)
	}
	return all
}

func TestRulesMeetDescriptors(t *testing.T) {
	s := NewSet([]*Policy{compileYAML(t, "p", `
  domain: d
  exempt:
  - {name: robot, match: {descriptor: [{key: user, value: robot}]}}
  - {name: office, match: {clientCIDRs: [192.168.0.0/16]}}
  - {name: probes, match: {paths: [{type: Exact, value: /healthz}]}}
  rules:
  - {name: user, limit: 1, window: 1s, match: {descriptor: [{key: user}]}, key: [{type: Descriptor, name: user}]}
  - {name: gold, limit: 1, window: 1s, match: {descriptor: [{key: user}, {key: tier, value: gold}]}, key: [{type: Descriptor, name: user}]}
  - {name: address, limit: 1, window: 1s, match: {descriptor: [{key: remote_address}]}, key: [{type: ClientIP}]}
  - {name: login, limit: 1, window: 1s, match: {methods: [POST], paths: [{type: Prefix, value: /login}]}, key: [{type: ClientIP}]}
  - {name: tier, limit: 1, window: 1s, match: {headers: [{name: X-Tier, type: Exact, value: gold}]}, key: [{type: Header, name: X-Tier}]}
  - {name: all, limit: 1, window: 1s}
`)})
	for _, c := range []struct {
		reason      string
		descriptors []Descriptor
		want        []string
	}{
		{"an entry without value matches any", descriptors("user=a"), []string{"0 user {a}"}},
		{"a value must be the rule's", descriptors("user=a,tier=gold"), []string{"0 gold {a}"}},
		{"another value", descriptors("user=a,tier=silver"), nil},
		{"entries in another order", descriptors("tier=gold,user=a"), nil},
		{"an entry more", descriptors("user=a,tier=gold,x=y"), nil},
		{"an entry less", descriptors("tier=gold"), nil},
		{"an empty value is missing", descriptors("user="), []string{`0 user {ip=""}`}},
		{"an empty value of a caller with an address", descriptors("user=", "remote_address=203.0.113.9"), []string{"0 user {ip=203.0.113.9}", "1 address {203.0.113.9}", "1 all {shop/p}"}},
		{"an address alone is open to both kinds of rules", descriptors("remote_address=203.0.113.9:80"), []string{"0 address {203.0.113.9}", "0 all {shop/p}"}},
		{"attributes are judged by the HTTP rules", descriptors("method=POST,path=//login/?next=x,remote_address=203.0.113.9"), []string{"0 login {203.0.113.9}", "0 all {shop/p}"}},
		{"attributes whose address stands elsewhere", descriptors("method=POST,path=/login", "remote_address=203.0.113.9"), []string{"0 login {203.0.113.9}", "0 all {shop/p}", "1 address {203.0.113.9}"}},
		{"a header", descriptors("header.x-tier=gold"), []string{"0 tier {gold}", "0 all {shop/p}"}},
		{"a rule without match applies once a call", descriptors("header.x-tier=gold", "method=GET", "user=a"), []string{"0 tier {gold}", "0 all {shop/p}", "2 user {a}"}},
		{"attributes among other entries are none", descriptors("user=a,method=POST"), nil},
		{"an exempt descriptor", descriptors("user=robot", "user=a"), []string{"1 user {a}"}},
		{"an exempt address", descriptors("user=a", "remote_address=192.168.1.1"), nil},
		{"an exempt path", descriptors("path=/healthz"), nil},
		{"no entries", []Descriptor{{}}, nil},
		{"more entries than a rule can have", descriptors(strings.Repeat("user=a,", 20) + "user=a"), nil},
		{"keys that only look alike", descriptors("user\x00\x00tier=gold"), nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var m Matcher
			s.Match(&Request{Method: "POST", Path: "/login", Descriptors: c.descriptors}, &m)
			var got []string
			for _, match := range m.Matches {
				tag := match.Key[len("rl:") : strings.Index(match.Key, "}")+1]
				got = append(got, fmt.Sprintf("%d %s %s", match.Descriptor, match.Rule.Name, tag))
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("matches (-want +got):\n%s", diff)
			}
		})
	}
	wantRules(t, s, &Request{Method: "GET", Path: "/", Peer: peer}, "all")
}
