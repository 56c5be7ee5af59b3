package proxy_test

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/policy"
)

// spellings are ways to write what may reach one handler. The application
// receives received, or sent where that is empty; clean is what the policies compare.
// refused spellings cannot be passed on as they are, or would be read differently
// by different applications: they are answered 400 and reach neither.
var spellings = []struct {
	sent, received, clean string
	refused               bool
}{
	{sent: "/api/login", clean: "/api/login"},
	{sent: "/api/login/", clean: "/api/login/"},
	{sent: "/API/login", clean: "/API/login"},
	{sent: "/api//login", clean: "/api/login"},
	{sent: "//api/login", clean: "/api/login"},
	{sent: "///api///login//", clean: "/api/login/"},
	{sent: "/api/./login", clean: "/api/login"},
	{sent: "/./api/login", clean: "/api/login"},
	{sent: "/api/login/.", clean: "/api/login/"},
	{sent: "/x/../api/login", clean: "/api/login"},
	{sent: "/../api/login", clean: "/api/login"},
	{sent: "/api/x/..//login", clean: "/api/login"},
	{sent: "/api/login/..", clean: "/api/"},
	{sent: "/api/%2e/login", clean: "/api/login"},
	{sent: "/x/%2E%2e/api/login", clean: "/api/login"},
	{sent: "/api/%6Cogin", clean: "/api/login"},
	{sent: "/api/%6cogin", clean: "/api/login"},
	{sent: "/%61%70%69/login", clean: "/api/login"},
	{sent: "/api%2Flogin", clean: "/api%2Flogin"},
	{sent: "/api%2flogin", clean: "/api%2Flogin"},
	{sent: "/api%5Clogin", clean: "/api%5Clogin"},
	{sent: `/api\login`, clean: `/api\login`},
	{sent: "/api/%252e%252e/login", clean: "/api/%252e%252e/login"},
	{sent: "/api;v=1/login", clean: "/api/login"},
	{sent: "/api/login;jsessionid=1", clean: "/api/login"},
	{sent: "/api/login;", clean: "/api/login"},
	{sent: "/api/..;/login", clean: "/login"},
	{sent: "/api/login%3Bx", clean: "/api/login%3Bx"},
	{sent: "/api/login%20", clean: "/api/login "},
	{sent: "/api/login%00", clean: "/api/login\x00"},
	{sent: "/api/login%0d%0ax", clean: "/api/login\r\nx"},
	{sent: "/api/login?", clean: "/api/login"},
	{sent: "/api/login?x=1", clean: "/api/login"},
	{sent: "/api/login?x=1;y=2&z=%zz", clean: "/api/login"},
	{sent: "/api/login?a=b?c=d//../", clean: "/api/login"},
	{sent: "/api/login??", clean: "/api/login"},
	{sent: "/api/login?" + strings.Repeat("a&", 11_000), clean: "/api/login"},
	{sent: "//api/login?x=1;y=2&z=%zz", clean: "/api/login"},
	{sent: "//api/login?", clean: "/api/login"},
	{sent: "//", clean: "/"},
	{sent: "/", clean: "/"},
	{sent: "/?x", clean: "/"},
	{sent: "/api/logín", clean: "/api/logín"},
	{sent: "/api/log\xffin", clean: "/api/log\xffin"},
	{sent: "/api/{id}|^`\"<>", clean: "/api/{id}|^`\"<>"},
	{sent: "/api/[id]/:verb@x!$&'()*+,=", clean: "/api/[id]/:verb@x!$&'()*+,="},
	{sent: "//api/%2F//login", clean: "/api/%2F/login"},
	{sent: "/http://elsewhere/api/login", clean: "/http:/elsewhere/api/login"},
	{sent: "http://shop.example/api/login", received: "/api/login", clean: "/api/login"},
	{sent: "HTTP://shop.example:8080//api/../login?x=;&%zz", received: "//api/../login?x=;&%zz", clean: "/login"},
	{sent: "https://shop.example/api/%6Cogin?", received: "/api/%6Cogin?", clean: "/api/login"},
	{sent: "http://shop.example", received: "/", clean: "/"},
	{sent: "http://shop.example?x=1", received: "/?x=1", clean: "/"},
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
	{sent: "/api/login#top", refused: true},
	{sent: "/api/login?x=1#top", refused: true},
	{sent: "http://shop.example/api/login#", refused: true},
	{sent: "/api/lo\tgin", refused: true},
	{sent: "/api/lo\x01gin", refused: true},
	{sent: "/api/lo gin", refused: true},
}

// loginRule is one rule, for /api/login alone.
func loginRule(t *testing.T) *policy.Set {
	t.Helper()
	limit := int64(100)
	spec := v1alpha1.RateLimitPolicySpec{Selector: &metav1.LabelSelector{}, Rules: []v1alpha1.Rule{{
		Name: "login", Limit: &limit, Window: "1m",
		Match: &v1alpha1.Match{Paths: []v1alpha1.PathMatch{{Type: v1alpha1.PathMatchExact, Value: "/api/login"}}},
	}}}
	compiled, err := policy.Compile(&v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "storefront"}, Spec: spec}, policy.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return policy.NewSet([]*policy.Policy{compiled})
}

func TestTheApplicationReceivesTheTargetAsSent(t *testing.T) {
	app := startRecorder(t)
	p := startProxy(t, app.url)
	login := loginRule(t)
	for _, s := range spellings {
		t.Run(fmt.Sprintf("%.60q", s.sent), func(t *testing.T) {
			before := len(p.requests())
			conn := dial(t, p.addr)
			conn.send("GET " + s.sent + " HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
			res := conn.answer("GET")
			decided, heads := p.requests()[before:], app.take()
			status, passed := http.StatusOK, 1
			if s.refused {
				status, passed = http.StatusBadRequest, 0
			}
			if res.StatusCode != status || len(decided) != passed || len(heads) != passed {
				t.Fatalf("status %d, %d decided, %d passed on; want %d and %d each", res.StatusCode, len(decided), len(heads), status, passed)
			}
			if s.refused {
				return
			}
			want := cmp.Or(s.received, s.sent)
			path, query, _ := strings.Cut(want, "?")
			line, _, _ := strings.Cut(heads[0], "\r\n")
			if line != "GET "+want+" HTTP/1.1" {
				t.Errorf("the application received %q", line)
			}
			if decided[0].Path != path || decided[0].RawQuery != query {
				t.Errorf("the policies saw path %q and query %q", decided[0].Path, decided[0].RawQuery)
			}
			if clean := policy.CleanPath(decided[0].Path); clean != s.clean {
				t.Errorf("the policies compare %q, want %q", clean, s.clean)
			}
			var m policy.Matcher
			login.Match(&decided[0], &m)
			if got, want := len(m.Matches) == 1, strings.TrimSuffix(s.clean, "/") == "/api/login"; got != want {
				t.Errorf("the rule for /api/login counts it: %v, want %v", got, want)
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
				if got := readAll(t, res); got != want {
					t.Errorf("the application received %q, want %q", got, want)
				}
			}
		})
	}
}
