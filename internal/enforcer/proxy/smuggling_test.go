package proxy_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tail is a second request that must not come out of a first one's body.
const tail = "GET /smuggled HTTP/1.1\r\nHost: shop.example\r\n\r\n"

// ambiguous are bytes that two readers may take for different requests. The
// decider and the application see passed of them, and the client these statuses
// before the connection is closed.
var ambiguous = map[string]struct {
	sent     string
	statuses []int
	passed   int
}{
	"a length and chunks: the chunks count, the length is dropped": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", []int{200}, 1},
	"chunks and a length: the order does not matter": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 60\r\n\r\n0\r\n\r\n", []int{200}, 1},
	"two lengths that differ": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 46\r\n\r\n" + tail, []int{400}, 0},
	"two lengths that agree count as one": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", []int{200}, 1},
	"a list of lengths": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 46\r\n\r\n" + tail, []int{400}, 0},
	"a length with a plus sign": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +46\r\n\r\n" + tail, []int{400}, 0},
	"a negative length": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n" + tail, []int{400}, 0},
	"a hexadecimal length": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2e\r\n\r\n" + tail, []int{400}, 0},
	"an empty length": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n" + tail, []int{400}, 0},
	"a length beyond counting": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n" + tail, []int{400}, 0},
	"chunked behind a carriage return": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \rchunked\r\n\r\n0\r\n\r\n" + tail, []int{400}, 0},
	"chunked behind a vertical tab": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + tail, []int{400}, 0},
	"chunked and then identity": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + tail, []int{501}, 0},
	"identity alone": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nContent-Length: 46\r\n\r\n" + tail, []int{501}, 0},
	"an unknown encoding": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + tail, []int{501}, 0},
	"two lines of encodings": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + tail, []int{501}, 0},
	"chunked in capitals is chunked": {
		"POST / HTTP/1.1\r\nHost: a\r\ntRANSFER-eNCODING:\tCHUNKED\r\n\r\n0\r\n\r\n", []int{200}, 1},
	"chunked on a folded line is cleaned up": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", []int{200}, 1},
	"a space before the colon": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + tail, []int{400}, 0},
	"a field that begins with a space": {
		"POST / HTTP/1.1\r\n Host: a\r\nContent-Length: 46\r\n\r\n" + tail, []int{400}, 0},
	"a NUL in a field's name": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length\x00: 46\r\n\r\n" + tail, []int{400}, 0},
	"a field without a colon": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length 46\r\n\r\n" + tail, []int{400}, 0},
	"a bare carriage return in a value": {
		"GET / HTTP/1.1\r\nHost: a\r\nX-A: b\rTransfer-Encoding: chunked\r\n\r\n" + tail, []int{400}, 0},
	"chunks in HTTP/1.0, where there are none: the connection ends": {
		"POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + tail, []int{200}, 1},
	"a bare line feed behind a chunk's size": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n" + tail, []int{400}, 1},
	"a bare line feed in a chunk's extension": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nx\r\n0\r\n\r\n" + tail, []int{400}, 1},
	"a chunk's size with a prefix": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n" + tail, []int{400}, 1},
	"a chunk's size with a plus sign": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n" + tail, []int{400}, 1},
	"a chunk's size beyond counting": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\nx\r\n0\r\n\r\n" + tail, []int{400}, 1},
	"a chunk longer than its size": {
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n" + tail, []int{400}, 1},
	"a body of GET is a body": {
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 46\r\n\r\n" + tail, []int{200}, 1},
	"two requests behind each other are two": {
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" + tail, []int{200, 200}, 2},
	"lines that end in line feeds are lines": {
		"GET / HTTP/1.1\nHost: a\n\n", []int{200}, 1},
	"two Host lines":                       {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + tail, []int{400}, 0},
	"no Host":                              {"GET / HTTP/1.1\r\n\r\n" + tail, []int{400}, 0},
	"a Host with a space":                  {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n" + tail, []int{400}, 0},
	"a Host with a path":                   {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" + tail, []int{400}, 0},
	"two spaces in the request line":       {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n" + tail, []int{400}, 0},
	"a space before the request line":      {" GET / HTTP/1.1\r\nHost: a\r\n\r\n" + tail, []int{400}, 0},
	"a tab in the request line":            {"GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n" + tail, []int{400}, 0},
	"more behind the version":              {"GET / HTTP/1.1 x\r\nHost: a\r\n\r\n" + tail, []int{400}, 0},
	"no version":                           {"GET /\r\nHost: a\r\n\r\n" + tail, []int{400}, 0},
	"a version in lower case":              {"GET / http/1.1\r\nHost: a\r\n\r\n" + tail, []int{400}, 0},
	"a version that needs another framing": {"GET / HTTP/2.0\r\nHost: a\r\n\r\n" + tail, []int{505}, 0},
	"a method that is no token":            {"GE(T / HTTP/1.1\r\nHost: a\r\n\r\n" + tail, []int{400}, 0},
	"an expectation that nobody knows":     {"GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n" + tail, []int{417}, 0},
}

func TestAmbiguousRequestsAreRefusedOrCleanedUp(t *testing.T) {
	for name, c := range ambiguous {
		t.Run(name, func(t *testing.T) {
			var received atomic.Int64
			app := startApp(t, func(_ http.ResponseWriter, r *http.Request) {
				received.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
			})
			p := startProxy(t, app)
			conn := dial(t, p.addr)
			conn.send(c.sent)
			if diff := cmp.Diff(c.statuses, conn.statuses(c.passed)); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			if got := len(p.requests()); got != c.passed {
				t.Errorf("%d decided, want %d", got, c.passed)
			}
			if got := int(received.Load()); got > c.passed {
				t.Errorf("the application saw %d, want at most the %d decided", got, c.passed)
			}
		})
	}
}
