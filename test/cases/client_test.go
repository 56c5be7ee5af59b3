package cases

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// caller sends requests to one enforcer from one address.
type caller struct {
	t    *testing.T
	base string
	http *http.Client
}

// reply is an answer that was read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

// from is a caller at an address of this machine, all of 127.0.0.0/8, that keeps
// its connections.
func (s *site) from(address string) *caller { return s.enforcers[0].from(s.t, address) }

func (e *enforcer) from(t *testing.T, address string) *caller {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{t: t, base: "http://" + e.Addr(), http: &http.Client{Transport: transport, Timeout: patience}}
}

// get sends GET; fields are names and values in turn, and a name may come twice.
func (c *caller) get(path string, fields ...string) reply {
	c.t.Helper()
	return c.send(http.MethodGet, path, fields...)
}

func (c *caller) send(method, path string, fields ...string) reply {
	c.t.Helper()
	r, err := c.try(method, path, fields...)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// try is send for other goroutines than the test's.
func (c *caller) try(method, path string, fields ...string) (reply, error) {
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, nil)
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(fields); i += 2 {
		request.Header.Add(fields[i], fields[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(body)}, err
}

// statuses sends n times the same, and returns the answers' statuses.
func (c *caller) statuses(n int, path string, fields ...string) []int {
	c.t.Helper()
	var all []int
	for range n {
		all = append(all, c.get(path, fields...).status)
	}
	return all
}

// passed tells how many of n requests are let through. Others must be denied.
func (c *caller) passed(n int, path string, fields ...string) (passed int) {
	c.t.Helper()
	for _, status := range c.statuses(n, path, fields...) {
		switch status {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			c.t.Fatalf("%s: answered %d", path, status)
		}
	}
	return passed
}

// times is a status so often, then another.
func times(n, status int, rest ...int) []int {
	all := make([]int, n, n+len(rest))
	for i := range all {
		all[i] = status
	}
	return append(all, rest...)
}

// raw sends bytes on a connection of their own, and returns the answers until the
// proxy closes it, which it is told to do after the first.
func (s *site) raw(text string) []reply {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.enforcers[0].Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	var all []reply
	for r := bufio.NewReader(conn); ; {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return all
		}
		body, _ := io.ReadAll(response.Body)
		all = append(all, reply{response.StatusCode, response.Header, string(body)})
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}
}

// rawGet sends one GET with the target and further lines as they are.
func (s *site) rawGet(target string, lines ...string) reply {
	s.t.Helper()
	head := append([]string{"GET " + target + " HTTP/1.1", "Host: shop.example", "Connection: close"}, lines...)
	answers := s.raw(strings.Join(head, "\r\n") + "\r\n\r\n")
	if len(answers) != 1 {
		s.t.Fatalf("%s: %d answers", target, len(answers))
	}
	return answers[0]
}

// page reads an admin page.
func (e *enforcer) page(t *testing.T, path string) string {
	t.Helper()
	response, err := http.Get("http://" + e.AdminAddr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
