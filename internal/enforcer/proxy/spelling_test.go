package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/enforcer/proxy"
)

// spellings are ways to write what may reach one handler. The application
// receives received, or sent where that is empty; decided is the path and query
// that the policies see, or received where empty. refused spellings cannot be
// passed on as they are: they are answered 400 and reach neither.
var spellings = []struct {
	sent, received, decided string
	refused                 bool
}{
	{sent: "/api/login"},
	{sent: "/api/login/"},
	{sent: "/API/login"},
	{sent: "/api//login"},
	{sent: "//api/login"},
	{sent: "///api///login//"},
	{sent: "/api/./login"},
	{sent: "/./api/login"},
	{sent: "/api/login/."},
	{sent: "/x/../api/login"},
	{sent: "/../api/login"},
	{sent: "/api/x/..//login"},
	{sent: "/api/login/.."},
	{sent: "/api/%2e/login"},
	{sent: "/x/%2E%2e/api/login"},
	{sent: "/api/%6Cogin"},
	{sent: "/api/%6cogin"},
	{sent: "/%61%70%69/login"},
	{sent: "/api%2Flogin"},
	{sent: "/api%2flogin"},
	{sent: "/api%5Clogin"},
	{sent: `/api\login`},
	{sent: "/api/%252e%252e/login"},
	{sent: "/api;v=1/login"},
	{sent: "/api/login;jsessionid=1"},
	{sent: "/api/login;"},
	{sent: "/api/..;/login"},
	{sent: "/api/login%3Bx"},
	{sent: "/api/login%20"},
	{sent: "/api/login%00"},
	{sent: "/api/login%0d%0ax"},
	{sent: "/api/login?"},
	{sent: "/api/login?x=1"},
	{sent: "/api/login?x=1;y=2&z=%zz"},
	{sent: "/api/login?a=b?c=d//../"},
	{sent: "/api/login??"},
	{sent: "/api/login?" + strings.Repeat("a&", 11_000)},
	{sent: "//api/login?x=1;y=2&z=%zz"},
	{sent: "//api/login?"},
	{sent: "//"},
	{sent: "/"},
	{sent: "/?x"},
	{sent: "/api/login#top"},
	{sent: "/api/logín"},
	{sent: "/api/log\xffin"},
	{sent: "/api/{id}|^`\"<>"},
	{sent: "/api/[id]/:verb@x!$&'()*+,="},
	{sent: "//api/%2F//login"},
	{sent: "/http://elsewhere/api/login"},
	{sent: "http://shop.example/api/login", received: "/api/login"},
	{sent: "HTTP://shop.example:8080//api/../login?x=;&%zz", received: "//api/../login?x=;&%zz"},
	{sent: "https://shop.example/api/%6Cogin?", received: "/api/%6Cogin?"},
	{sent: "http://shop.example", received: "/"},
	{sent: "http://shop.example?x=1", received: "/?x=1"},
	{sent: "//api/{id}", refused: true},
	{sent: "//api/logín", refused: true},
	{sent: "/api/%zz", refused: true},
	{sent: "/api/%", refused: true},
	{sent: "api/login", refused: true},
	{sent: "?x=1", refused: true},
	{sent: "*", refused: true},
	{sent: "http:/api/login", refused: true},
	{sent: "http:api/login", refused: true},
	{sent: "http:///api/login", refused: true},
	{sent: "ftp://shop.example/api/login", refused: true},
	{sent: "http://shop.example#/api/login", refused: true},
	{sent: "/api/lo\tgin", refused: true},
	{sent: "/api/lo\x01gin", refused: true},
	{sent: "/api/lo gin", refused: true},
}

func TestTheApplicationReceivesTheTargetAsSent(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url)
	for _, s := range spellings {
		t.Run(fmt.Sprintf("%.60q", s.sent), func(t *testing.T) {
			before := len(p.requests())
			conn := dial(t, p.addr)
			conn.send("GET " + s.sent + " HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
			res := conn.answer("GET")
			decided, heads := p.requests()[before:], app.take()
			if s.refused {
				if res.StatusCode != http.StatusBadRequest || len(decided) != 0 || len(heads) != 0 {
					t.Fatalf("status %d, %d decided, %d passed on; want 400 and none", res.StatusCode, len(decided), len(heads))
				}
				return
			}
			want := s.received
			if want == "" {
				want = s.sent
			}
			if res.StatusCode != http.StatusOK || len(decided) != 1 || len(heads) != 1 {
				t.Fatalf("status %d, %d decided, %d passed on; want 200 and one each", res.StatusCode, len(decided), len(heads))
			}
			line, _, _ := strings.Cut(heads[0], "\r\n")
			if diff := cmp.Diff("GET "+want+" HTTP/1.1", line); diff != "" {
				t.Errorf("the application received (-want +got):\n%s", diff)
			}
			path, query, _ := strings.Cut(want, "?")
			if diff := cmp.Diff([]string{path, query}, []string{decided[0].Path, decided[0].RawQuery}); diff != "" {
				t.Errorf("the policies saw (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAsteriskOfOptionsIsPassedOn(t *testing.T) {
	for sent, want := range map[string]string{
		"*": "*", "http://shop.example": "*", "http://shop.example/": "/", "/": "/",
	} {
		t.Run(sent, func(t *testing.T) {
			app := startRecorder(t)
			p := startProxy(t, app.url)
			conn := dial(t, p.addr)
			conn.send("OPTIONS " + sent + " HTTP/1.1\r\nHost: shop.example\r\n\r\n")
			conn.answer("OPTIONS")
			if line, _, _ := strings.Cut(app.take()[0], "\r\n"); line != "OPTIONS "+want+" HTTP/1.1" {
				t.Errorf("the application received %q", line)
			}
			if got := p.requests()[0].Path; got != want {
				t.Errorf("the policies saw path %q, want %q", got, want)
			}
		})
	}
}

func TestTheTargetSurvivesEveryMixOfProtocols(t *testing.T) {
	targets := []string{"/a//b/../c%2F?x=1;y=2&z=%zz", "//a/b?", "/a|b", "/a?"}
	for _, protocol := range []proxy.Protocol{proxy.HTTP1, proxy.HTTP2} {
		app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s %s", r.Proto, r.Host, r.RequestURI)
		})
		p := startProxy(t, app, func(c *proxy.Config) { c.Protocol = protocol })
		clients(t, func(t *testing.T, client *http.Client) {
			t.Helper()
			for _, target := range targets {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url("/"), nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = "shop.example"
				path, query, found := strings.Cut(target, "?")
				req.URL.Path, req.URL.RawQuery, req.URL.ForceQuery = path, query, found
				if strings.HasPrefix(target, "/a") {
					req.URL.Opaque, req.URL.RawQuery, req.URL.ForceQuery = target, "", false
				}
				res, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				want := map[proxy.Protocol]string{proxy.HTTP1: "HTTP/1.1", proxy.HTTP2: "HTTP/2.0"}[protocol] + " shop.example " + target
				if diff := cmp.Diff(want, readAll(t, res)); diff != "" {
					t.Errorf("the application received (-want +got):\n%s", diff)
				}
			}
		})
	}
}
