package cases

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// behind trusts one address of this machine, as if a balancer stood there.
const behind = "  clientAddress: {trustedProxies: [127.0.0.9]}\n"

const balancer = "127.0.0.9"

func TestForgedAddressesChangeNobodysCounter(t *testing.T) {
	t.Parallel()
	forged := func(i int) string { return fmt.Sprintf("198.51.%d.%d", i%7, i) }
	t.Run("without trusted proxies the peer is counted", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", perAddress(20)))
		peer := s.from("127.0.0.2")
		var passed int
		for i := range 50 {
			passed += peer.passed(1, "/", "X-Forwarded-For", forged(i))
		}
		s.wantAttempts(map[string]int{"127.0.0.2": 50})
		if passed != 20 {
			t.Errorf("%d pass, want 20", passed)
		}
	})
	t.Run("behind a trusted proxy what it saw itself is counted", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", behind+perAddress(20)))
		proxy := s.from(balancer)
		var passed int
		for i := range 50 {
			passed += proxy.passed(1, "/", "X-Forwarded-For", forged(i)+", 203.0.113.9")
		}
		passed += proxy.passed(1, "/", "X-Forwarded-For", "192.0.2.77, 203.0.113.9")
		s.wantAttempts(map[string]int{"203.0.113.9": 51})
		if passed != 20 {
			t.Errorf("%d pass, want 20", passed)
		}
	})
	t.Run("several lines are one list", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", behind+perAddress(20)))
		s.from(balancer).get("/", "X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "203.0.113.9")
		s.wantAttempts(map[string]int{"203.0.113.9": 1})
		seen := s.app.requests()
		if got := seen[len(seen)-1].Header["X-Forwarded-For"]; !cmp.Equal(got, []string{"1.1.1.1, 203.0.113.9, " + balancer}) {
			t.Errorf("the application is told %q", got)
		}
	})
}

func TestCallersBehindABalancer(t *testing.T) {
	t.Parallel()
	const ignored = `weir_forwarded_address_ignored_total{policy="shop/p"}`
	t.Run("share a limit while nobody is trusted, and a metric shows why", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", perAddress(3)))
		proxy := s.from(balancer)
		noisy, quiet := proxy.passed(5, "/", "X-Forwarded-For", "203.0.113.1"), proxy.passed(1, "/", "X-Forwarded-For", "203.0.113.2")
		if noisy != 3 || quiet != 0 || s.metric(ignored) != 6 {
			t.Errorf("%d and %d pass, %d are reported", noisy, quiet, s.metric(ignored))
		}
	})
	t.Run("have limits of their own once it is trusted", func(t *testing.T) {
		t.Parallel()
		s := open(t, setup{}, policy("p", behind+perAddress(3)))
		proxy := s.from(balancer)
		noisy, quiet := proxy.passed(5, "/", "X-Forwarded-For", "203.0.113.1"), proxy.passed(1, "/", "X-Forwarded-For", "203.0.113.2")
		if noisy != 3 || quiet != 1 || s.metric(ignored) != 0 {
			t.Errorf("%d and %d pass, %d are reported", noisy, quiet, s.metric(ignored))
		}
	})
}

func TestOneAddressIsOneCounterHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	hundred := make([]string, 100)
	for i := range hundred {
		hundred[i] = fmt.Sprintf("2001:db8:1:2:%x::%x", i*7, i)
	}
	for name, c := range map[string]struct {
		options   string
		forwarded []string
		want      map[string]int
	}{
		"ports are not part of it": {"", []string{"203.0.113.9:51234", "203.0.113.9", "203.0.113.9:1"}, map[string]int{"203.0.113.9": 3}},
		"brackets and ports of IPv6 are not part of it": {"", []string{"[2001:db8::1]:443", "2001:db8::1", "[2001:db8::1]"},
			map[string]int{"2001%3Adb8%3A%3A": 3}},
		"what is no address falls to the peer": {"", []string{"203.0.113.9:99999", "unknown", ",,", ""}, map[string]int{balancer: 4}},
		"what is no address falls to the last good one": {"", []string{"unknown, 203.0.113.9", ",, 203.0.113.9"},
			map[string]int{"203.0.113.9": 2}},
		"four spellings of IPv6": {"", []string{"2001:db8::1", "2001:0DB8::0001", "2001:db8:0:0:0:0:0:1", "2001:db8::0:1"},
			map[string]int{"2001%3Adb8%3A%3A": 4}},
		"a hundred addresses of one /64": {"", hundred, map[string]int{"2001%3Adb8%3A1%3A2%3A%3A": 100}},
		"two addresses of one /64 where all 128 bits count": {", ipv6PrefixLength: 128", hundred[:2],
			map[string]int{"2001%3Adb8%3A1%3A2%3A%3A": 1, "2001%3Adb8%3A1%3A2%3A7%3A%3A1": 1}},
		"IPv4 in the dress of IPv6": {"", []string{"::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.2"}, map[string]int{"192.0.2.1": 2, "192.0.2.2": 1}},
		"IPv4 behind NAT64":         {"", []string{"64:ff9b::808:808", "64:ff9b::909:909"}, map[string]int{"8.8.8.8": 1, "9.9.9.9": 1}},
		"zones are not part of it":  {"", []string{"fe80::1%eth0", "fe80::1"}, map[string]int{"fe80%3A%3A": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, setup{}, policy("p", "  clientAddress: {trustedProxies: [127.0.0.9]"+c.options+"}\n"+perAddress(1000)))
			proxy := s.from(balancer)
			for _, value := range c.forwarded {
				proxy.get("/", "X-Forwarded-For", value)
			}
			s.wantAttempts(c.want)
		})
	}
}

func TestTenConnectionsAreOneCaller(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", perAddress(4)))
	var passed int
	for range 10 {
		passed += s.from("127.0.0.3").passed(1, "/")
	}
	s.wantAttempts(map[string]int{"127.0.0.3": 10})
	if passed != 4 {
		t.Errorf("%d pass, want 4", passed)
	}
}

func TestAnAddressOfAnotherHeader(t *testing.T) {
	t.Parallel()
	s := open(t, setup{}, policy("p", "  clientAddress: {trustedProxies: [127.0.0.9], header: CF-Connecting-IP}\n"+perAddress(1)))
	for _, c := range []struct {
		reason, peer, address string
		want                  int
	}{
		{"the first request of an address", balancer, "192.0.2.1", http.StatusOK},
		{"its second", balancer, "192.0.2.1", http.StatusTooManyRequests},
		{"the same address in another spelling", balancer, "::ffff:192.0.2.1", http.StatusTooManyRequests},
		{"another address", balancer, "192.0.2.2", http.StatusOK},
		{"from elsewhere the peer counts", "127.0.0.4", "192.0.2.3", http.StatusOK},
		{"whatever it says", "127.0.0.4", "192.0.2.4", http.StatusTooManyRequests},
	} {
		if got := s.from(c.peer).get("/", "CF-Connecting-IP", c.address).status; got != c.want {
			t.Errorf("%s: %d, want %d", c.reason, got, c.want)
		}
	}
}
