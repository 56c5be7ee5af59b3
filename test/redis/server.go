// Package redis starts real Redis servers for tests, on loopback, and stops them
// with the test, whatever happens.
package redis

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of this test.
type Server struct {
	t      testing.TB
	port   string
	args   []string
	cmd    *exec.Cmd
	output bytes.Buffer
	client *redis.Client
}

// Start runs a server without persistence on a free port until the test ends.
// Further arguments go to redis-server as they are.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	_ = listener.Close()
	s := &Server{t: t, port: port, args: append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
	}, args...)}
	s.client = redis.NewClient(&redis.Options{Addr: s.Addr(), Protocol: 2, DisableIdentity: true})
	s.Run()
	t.Cleanup(func() {
		_ = s.client.Close()
		s.Stop()
	})
	return s
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return "127.0.0.1:" + s.port }

// Client is a client for looking into the server.
func (s *Server) Client() *redis.Client { return s.client }

// Run starts the server, again after Stop, and waits until it answers.
func (s *Server) Run() {
	s.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatal("redis-server is not installed; make redis-server installs it")
	}
	s.output.Reset()
	s.cmd = exec.CommandContext(context.Background(), program, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Pdeathsig follows the thread that starts the process; it is ended by the
	// test's clean-up long before that.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	s.await()
}

func (s *Server) await() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.client.Ping(ctx).Err() != nil {
		select {
		case <-ctx.Done():
			s.t.Fatalf("redis-server does not answer: %s", s.output.String())
		case <-tick.C:
		}
	}
}

// Stop kills the server.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Pause stops the server in its tracks; its connections stay open.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
