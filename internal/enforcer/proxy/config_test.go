package proxy_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/policy"
)

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	for upstream, want := range map[string]string{
		"":                       "upstream is missing",
		"127.0.0.1":              "scheme must be http or https",
		"ftp://127.0.0.1":        "scheme must be http or https",
		"http://:80":             "host is missing",
		"http://127.0.0.1/base":  "remove what follows the host and port",
		"http://127.0.0.1?x":     "remove what follows the host and port",
		"http://127.0.0.1?":      "remove what follows the host and port",
		"http://127.0.0.1#x":     "remove what follows the host and port",
		"http://me:pw@127.0.0.1": "remove the user",
	} {
		var address *url.URL
		if upstream != "" {
			var err error
			if address, err = url.Parse(upstream); err != nil {
				t.Fatal(err)
			}
		}
		_, err := proxy.New(proxy.Config{Upstream: address, Decider: &decider{}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("upstream %q: %v, want %q", upstream, err, want)
		}
	}
	if _, err := proxy.New(proxy.Config{Upstream: &url.URL{Scheme: "http", Host: "127.0.0.1"}}); err == nil {
		t.Error("a proxy without a decider")
	}
}

// broken is a decider with a bug.
type broken struct{}

func (broken) Decide(context.Context, *policy.Request, *limiter.Decision) { panic("secret") }

// lines receives what is logged.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// logTo makes the proxy log to l, down to the last detail.
func logTo(l lines) func(*proxy.Config) {
	handler := slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})
	return func(c *proxy.Config) { c.Logger = slog.New(handler) }
}

func TestAPanicIsLoggedWithoutWhatTheClientSent(t *testing.T) {
	logged := make(lines, 1)
	p := startProxy(t, startRecorder(t).url, logTo(logged), func(c *proxy.Config) { c.Decider = broken{} })
	for _, client := range []*http.Client{newClient(t, false), newClient(t, true)} {
		if res, err := client.Get(p.url("/secret")); err == nil {
			res.Body.Close()
			t.Fatal("a request that was not decided was answered")
		}
		text := <-logged
		if !strings.Contains(text, "panic while serving a request") || !strings.Contains(text, "config_test.go") {
			t.Errorf("logged %q", text)
		}
		if strings.Contains(text, "secret") || strings.Contains(text, "127.0.0.1") {
			t.Errorf("logged what the client sent: %q", text)
		}
	}
}

func TestNothingIsLoggedForARequest(t *testing.T) {
	logged := make(lines, 100)
	p := startProxy(t, closedAddress(t), logTo(logged))
	for _, sent := range []string{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "this is nonsense\r\n\r\n", "GET /?a;b HTTP/1.0\r\n\r\n"} {
		conn := dial(t, p.addr)
		conn.send(sent)
		conn.statuses(0)
	}
	if len(logged) > 0 {
		t.Errorf("logged %q", <-logged)
	}
}
