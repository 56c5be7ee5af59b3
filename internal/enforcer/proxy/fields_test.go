package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/enforcer/proxy"
)

// passOn sends the lines as the fields of a request and returns what the
// application received of it.
func passOn(t *testing.T, p *running, app *recorder, lines ...string) *http.Request {
	t.Helper()
	conn := dial(t, p.addr)
	conn.send("GET / HTTP/1.1\r\nHost: shop.example:80\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n")
	if res := conn.answer("GET"); res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	heads := app.take()
	if len(heads) != 1 {
		t.Fatalf("the application received %d requests", len(heads))
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(heads[0])))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const always = "X-Forwarded-For: 127.0.0.1|X-Forwarded-Host: shop.example:80|X-Forwarded-Proto: http"

// flatten lists a request's fields in a form to compare.
func flatten(h http.Header) string {
	var lines []string
	for _, name := range sorted(h) {
		for _, value := range h[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return strings.Join(lines, "|")
}

func TestFieldsOnTheWayToTheApplication(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url)
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"other fields pass as they are": {
			[]string{"X-A: 1", "x-a: 2", "Accept-Encoding: br", "Cookie: a=b", "X_Under: s"},
			"Accept-Encoding: br|Cookie: a=b|X-A: 1|X-A: 2|" + always + "|X_under: s"},
		"nothing is added for a client that says little": {nil, always},
		"fields that Connection names are for this hop": {
			[]string{"Connection: close, X-Tenant", "X-Tenant: a"}, always},
		"an empty Connection line hides no second one": {
			[]string{"Connection:", "Connection: X-Tenant", "X-Tenant: a"}, always},
		"the forwarded address is not for this hop": {
			[]string{"Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto", "X-Forwarded-For: 203.0.113.9"}, always},
		"fields that were always for one hop": {
			[]string{"Keep-Alive: 5", "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic eA==", "TE: gzip"}, always},
		"trailer fields are understood": {
			[]string{"TE: gzip, trailers"}, "Te: trailers|" + always},
		"upgrades that cannot be counted are not passed on": {
			[]string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"}, always},
		"settings of another protocol go nowhere either": {
			[]string{"HTTP2-Settings: AAMAAABkAAQAAP__"}, always},
		"a WebSocket among other protocols is not passed on": {
			[]string{"Connection: Upgrade", "Upgrade: h2c, websocket"}, always},
		"a WebSocket on a second line is not passed on": {
			[]string{"Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"}, always},
		"an Upgrade that Connection does not name is not passed on": {
			[]string{"Upgrade: websocket"}, always},
		"an upgrade of bytes that are no name is not passed on": {
			[]string{"Connection: Upgrade", "Upgrade: \xff"}, always},
		"what nobody trusted says of others is replaced": {
			[]string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Host: x", "X-Forwarded-Proto: https", "Forwarded: for=203.0.113.9"}, always},
	} {
		t.Run(name, func(t *testing.T) {
			r := passOn(t, p, app, c.lines...)
			if diff := cmp.Diff(c.want, flatten(r.Header)); diff != "" {
				t.Errorf("the application received (-want +got):\n%s", diff)
			}
			if r.Host != "shop.example:80" {
				t.Errorf("the application received Host %q", r.Host)
			}
		})
	}
}

func TestATrustedPeersWordIsExtended(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url, trusting("127.0.0.0/8"))
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"no word":         {nil, always},
		"an empty word":   {[]string{"X-Forwarded-For:"}, always},
		"one address":     {[]string{"X-Forwarded-For: 203.0.113.9"}, strings.Replace(always, "127", "203.0.113.9, 127", 1)},
		"lines in order":  {[]string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 203.0.113.9"}, strings.Replace(always, "127", "1.1.1.1, 203.0.113.9, 127", 1)},
		"named for a hop": {[]string{"X-Forwarded-For: 203.0.113.9", "Connection: X-Forwarded-For"}, strings.Replace(always, "127", "203.0.113.9, 127", 1)},
		"host and scheme": {[]string{"X-Forwarded-Host: shop.example", "X-Forwarded-Proto: https"},
			"X-Forwarded-For: 127.0.0.1|X-Forwarded-Host: shop.example|X-Forwarded-Proto: https"},
		"the standard's form": {[]string{"Forwarded: for=203.0.113.9;proto=https"},
			"Forwarded: for=203.0.113.9;proto=https, for=127.0.0.1|" + always},
	} {
		t.Run(name, func(t *testing.T) {
			r := passOn(t, p, app, c.lines...)
			if diff := cmp.Diff(c.want, flatten(r.Header)); diff != "" {
				t.Errorf("the application received (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddressesOfVersionSixAreForwarded(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 on this machine")
	}
	app := startRecorder(t)
	p := startProxyOn(t, listener, app.url, trusting("::1/128"))
	r := passOn(t, p, app, "X-Forwarded-For: 2001:db8::7", `Forwarded: for="[2001:db8::7]"`)
	got := r.Header.Get("X-Forwarded-For") + "|" + r.Header.Get("Forwarded")
	if want := `2001:db8::7, ::1|for="[2001:db8::7]", for="[::1]"`; got != want {
		t.Errorf("the application received %s, want %s", got, want)
	}
	if peer := p.requests()[0].Peer; peer != netip.IPv6Loopback() {
		t.Errorf("the policies saw peer %v", peer)
	}
}

func TestAPeerWithoutAnAddressIsNotForwarded(t *testing.T) {
	listener, err := net.Listen("unix", t.TempDir()+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	app := startRecorder(t)
	p := startProxyOn(t, listener, app.url)
	conn, err := net.Dial("unix", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	if head := app.take()[0]; strings.Contains(head, "X-Forwarded-For") {
		t.Errorf("the application received %q", head)
	}
	if peer := p.requests()[0].Peer; peer.IsValid() {
		t.Errorf("the policies saw peer %v", peer)
	}
}

func TestTheDecisionSeesTheRequestAsSent(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url)
	passOn(t, p, app, "Connection: close, X-Tenant, X-Forwarded-For", "X-Tenant: a",
		"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 203.0.113.9", "Upgrade: h2c")
	got := p.requests()[0]
	want := map[string][]string{
		"Connection":      {"close, X-Tenant, X-Forwarded-For"},
		"X-Tenant":        {"a"},
		"X-Forwarded-For": {"1.1.1.1", "203.0.113.9"},
		"Upgrade":         {"h2c"},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if got.Host != "shop.example:80" || got.Method != http.MethodGet || got.Peer != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("host %q, method %q, peer %v", got.Host, got.Method, got.Peer)
	}
}

func TestHostsThatWouldBeChangedAreRefused(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url)
	for _, target := range []string{"http://sh%C3%B6p.example/", "http://[fe80::1%25eth0]/", "http://a%20b/", "http://a b/"} {
		conn := dial(t, p.addr)
		conn.send("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if res := conn.answer("GET"); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", target, res.StatusCode)
		}
	}
	if len(p.requests()) != 0 || len(app.take()) != 0 {
		t.Error("a request that was refused went on")
	}
}

func TestARequestWithoutHostNamesTheUpstream(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url)
	conn := dial(t, p.addr)
	conn.send("GET / HTTP/1.0\r\n\r\n")
	conn.answer("GET")
	if want := "Host: " + strings.TrimPrefix(app.url, "http://") + "\r\n"; !strings.Contains(app.take()[0], want) {
		t.Errorf("the application did not receive %q", want)
	}
}

func TestFieldsOnTheWayBack(t *testing.T) {
	app := startApp(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"], h["Date"] = nil, nil
		h.Add("X-A", "1")
		h.Add("X-A", "2")
		h.Set("X-RateLimit-Limit", "7")
		h.Set("X-RateLimit-Remaining", "7")
		h.Set("RateLimit", `"theirs";r=7;t=7`)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "<html>")
	})
	for _, protocol := range []proxy.Protocol{proxy.HTTP1, proxy.HTTP2} {
		p := startProxy(t, app, func(c *proxy.Config) { c.Protocol = protocol })
		clients(t, func(t *testing.T, client *http.Client) {
			t.Helper()
			res, err := client.Get(p.url("/"))
			if err != nil {
				t.Fatal(err)
			}
			if body := readAll(t, res); body != "<html>" || res.StatusCode != http.StatusCreated {
				t.Errorf("status %d, body %q", res.StatusCode, body)
			}
			for name, want := range map[string]string{
				"X-A": "1 2", "X-Ratelimit-Limit": "100", "X-Ratelimit-Remaining": "42", "Ratelimit": `"per-user";r=42;t=18`,
				"Ratelimit-Policy": `"per-user";q=100;w=60`,
				"Content-Type":     "", "Retry-After": "",
			} {
				if got := strings.Join(res.Header[name], " "); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestFieldsOfTheLastHopAreNotPassedBack(t *testing.T) {
	app := startRawApp(t, "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"+
		"Proxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-A: 1\r\nContent-Length: 0\r\n\r\n")
	p := startProxy(t, app)
	res := get(t, newClient(t, false), p.url("/"))
	readAll(t, res)
	for _, name := range []string{"Connection", "X-Hop", "Keep-Alive", "Proxy-Authenticate", "Upgrade"} {
		if got := res.Header[name]; got != nil {
			t.Errorf("%s: %q reached the client", name, got)
		}
	}
	if res.Header.Get("X-A") != "1" {
		t.Error("another field did not reach the client")
	}
}
