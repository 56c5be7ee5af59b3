package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/enforcer/proxy"
)

func get(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestServerSentEventsArriveOneByOne(t *testing.T) {
	next := make(chan string)
	app := startApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for event := range next {
			fmt.Fprintf(w, "data: %s\n\n", event)
			_ = http.NewResponseController(w).Flush()
		}
	})
	p := startProxy(t, app)
	clients(t, func(t *testing.T, client *http.Client) {
		t.Helper()
		next = make(chan string)
		res := get(t, client, p.url("/events")) // the fields come before any event
		if res.Header.Get("X-Ratelimit-Remaining") != "42" {
			t.Error("the answer carries no quota")
		}
		lines := bufio.NewScanner(res.Body)
		for i := range 5 {
			next <- fmt.Sprint(i) // the next one is sent only after this one was read
			lines.Scan()
			if want := fmt.Sprintf("data: %d", i); lines.Text() != want {
				t.Fatalf("received %q, want %q", lines.Text(), want)
			}
			lines.Scan()
		}
		close(next)
		readAll(t, res)
	})
}

func TestAnEchoStreamsBothWaysAtOnce(t *testing.T) {
	app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintln(w, lines.Text())
			_ = http.NewResponseController(w).Flush()
		}
	})
	for _, protocol := range []proxy.Protocol{proxy.HTTP1, proxy.HTTP2} {
		p := startProxy(t, app, func(c *proxy.Config) { c.Protocol = protocol })
		clients(t, func(t *testing.T, client *http.Client) {
			t.Helper()
			body, out := io.Pipe()
			res, err := client.Post(p.url("/"), "text/plain", body)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(res.Body)
			for i := range 5 {
				fmt.Fprintln(out, i)
				if lines.Scan(); lines.Text() != fmt.Sprint(i) {
					t.Fatalf("received %q, want %d", lines.Text(), i)
				}
			}
			out.Close()
			if rest := readAll(t, res); rest != "" {
				t.Errorf("received %q at the end", rest)
			}
		})
	}
}

// zeros is a body of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestLargeBodiesPassInLittleMemory(t *testing.T) {
	const size = 64 << 20
	app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Received", fmt.Sprint(n))
		_, _ = io.CopyN(w, zeros{}, size)
	})
	p := startProxy(t, app)
	clients(t, func(t *testing.T, client *http.Client) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		res, err := client.Post(p.url("/"), "application/octet-stream", io.LimitReader(zeros{}, size))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		n, err := io.Copy(io.Discard, res.Body)
		if err != nil || n != size || res.Header.Get("X-Received") != fmt.Sprint(size) {
			t.Errorf("%s bytes sent, %d received, %v", res.Header.Get("X-Received"), n, err)
		}
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > size/2 {
			t.Errorf("the heap grew by %d bytes for two bodies of %d", grown, size)
		}
	})
}

func TestTrailersPassBothWays(t *testing.T) {
	app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Announced", strings.Join(r.Trailer["X-Sum"], ",")+" back")
		w.Header().Set(http.TrailerPrefix+"X-Late", fmt.Sprint(len(r.Trailer)))
	})
	for _, protocol := range []proxy.Protocol{proxy.HTTP1, proxy.HTTP2} {
		p := startProxy(t, app, func(c *proxy.Config) { c.Protocol = protocol })
		clients(t, func(t *testing.T, client *http.Client) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url("/"), io.MultiReader(strings.NewReader("body")))
			if err != nil {
				t.Fatal(err)
			}
			req.Trailer = http.Header{"X-Sum": {"841a"}}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if body := readAll(t, res); body != "body" {
				t.Errorf("body %q", body)
			}
			want := http.Header{"X-Announced": {"841a back"}, "X-Late": {"1"}}
			if diff := cmp.Diff(want, res.Trailer); diff != "" {
				t.Errorf("trailer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTrailersThatWereNotAnnouncedAreDropped(t *testing.T) {
	trailers := make(chan http.Header, 1)
	app := startApp(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		trailers <- r.Trailer
	})
	p := startProxy(t, app)
	conn := dial(t, p.addr)
	conn.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" +
		"1\r\nx\r\n0\r\nX-Sum: 1\r\nX-User-Id: root\r\nContent-Length: 7\r\n\r\n")
	conn.answer("POST")
	if diff := cmp.Diff(http.Header{"X-Sum": {"1"}}, <-trailers); diff != "" {
		t.Errorf("the application received (-want +got):\n%s", diff)
	}
}

func TestTheBodyIsAskedForOnlyByTheApplication(t *testing.T) {
	app := startApp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	p := startProxy(t, app)
	p.refuse = denyPath("/denied")
	for path, want := range map[string]string{"/yes": "100 200 body", "/no": "417", "/denied": "429"} {
		t.Run(path, func(t *testing.T) {
			conn := dial(t, p.addr)
			conn.send("POST " + path + " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
			res := conn.answer("POST")
			got := fmt.Sprint(res.StatusCode)
			if res.StatusCode == http.StatusContinue {
				conn.send("body")
				res = conn.answer("POST")
				got += fmt.Sprintf(" %d %s", res.StatusCode, readAll(t, res))
			}
			if got != want {
				t.Errorf("received %q, want %q", got, want)
			}
		})
	}
}

func TestEarlyHintsPassWithoutQuota(t *testing.T) {
	app := startApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Link", "</late.css>; rel=preload")
		fmt.Fprint(w, "page")
	})
	p := startProxy(t, app)
	clients(t, func(t *testing.T, client *http.Client) {
		t.Helper()
		var hints []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, h["Link"], h["X-Ratelimit-Remaining"]))
			return nil
		}}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, p.url("/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if body := readAll(t, res); body != "page" {
			t.Errorf("body %q", body)
		}
		if diff := cmp.Diff([]string{"103 [</style.css>; rel=preload] []"}, hints); diff != "" {
			t.Errorf("hints (-want +got):\n%s", diff)
		}
		if got := fmt.Sprint(res.Header["Link"], res.Header["X-Ratelimit-Remaining"]); got != "[</late.css>; rel=preload] [42]" {
			t.Errorf("the answer has %s", got)
		}
	})
}

func TestHeadKeepsTheLength(t *testing.T) {
	app := startApp(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "12345") })
	p := startProxy(t, app)
	clients(t, func(t *testing.T, client *http.Client) {
		t.Helper()
		res, err := client.Head(p.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		if body := readAll(t, res); body != "" || res.ContentLength != 12345 || res.Header.Get("X-Ratelimit-Remaining") != "42" {
			t.Errorf("length %d, body %q, quota %q", res.ContentLength, body, res.Header.Get("X-Ratelimit-Remaining"))
		}
	})
}

func TestAnAnswerThatBreaksOffBreaksOffForTheClient(t *testing.T) {
	app := startApp(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	p := startProxy(t, app)
	clients(t, func(t *testing.T, client *http.Client) {
		t.Helper()
		res := get(t, client, p.url("/"))
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); string(body) != "part" || err == nil {
			t.Errorf("received %q, %v; want a part and an error", body, err)
		}
	})
}

func TestAnEarlyAnswerDoesNotWaitForTheBody(t *testing.T) {
	p := startProxy(t, startRawApp(t, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"),
		func(c *proxy.Config) { c.Limits.UnreadBodyTimeout = 10 * time.Millisecond })
	p.refuse = denyPath("/denied")
	for path, want := range map[string]int{"/early": 413, "/denied": 429} {
		for _, framing := range []string{"Content-Length: 1000", "Content-Length: 1000000000", "Transfer-Encoding: chunked"} {
			t.Run(path+" "+framing, func(t *testing.T) {
				conn := dial(t, p.addr)
				conn.send("POST " + path + " HTTP/1.1\r\nHost: a\r\n" + framing + "\r\n\r\n") // and no body ever
				if res := conn.answer("POST"); res.StatusCode != want {
					t.Errorf("status %d, want %d", res.StatusCode, want)
				}
				if _, err := conn.r.ReadByte(); !errors.Is(err, io.EOF) {
					t.Errorf("the connection stays open: %v", err)
				}
			})
		}
	}
}

func TestARefusedBodyThatHasArrivedKeepsTheConnection(t *testing.T) {
	p := startProxy(t, startApp(t, func(http.ResponseWriter, *http.Request) {}))
	p.refuse = denyAll
	conn := dial(t, p.addr)
	for range 3 {
		conn.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
		if res := conn.answer("POST"); res.StatusCode != http.StatusTooManyRequests || res.Close {
			t.Fatalf("status %d, closes %v", res.StatusCode, res.Close)
		}
	}
}
