package redis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The bed's own user may do everything, whatever passwords a test sets.
const bedUser, bedPassword = "testbed", "testbed"

// Server is a redis-server of this test.
type Server struct {
	t      testing.TB
	port   int
	dir    string
	args   []string
	cmd    *exec.Cmd
	client *redis.Client
}

// Start runs a server without persistence on a free port until the test ends.
// Further arguments go to redis-server as they are.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := prepare(t, nil, args...)
	s.Run()
	return s
}

// StartTLS is Start for a server that speaks TLS only, and asks clients for a
// certificate of the same authority.
func StartTLS(t testing.TB, certificates *Certificates, args ...string) *Server {
	t.Helper()
	s := prepare(t, certificates, args...)
	s.Run()
	return s
}

// User returns the arguments that make a server know a user who may do what rules
// say, in the words of Redis's ACL SETUSER.
func User(name, password string, rules ...string) []string {
	return append([]string{"--user", name, "on", ">" + password}, rules...)
}

// prepare reserves what a server needs, and cleans it up in the end.
func prepare(t testing.TB, certificates *Certificates, args ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis-") //nolint:usetesting // t.TempDir's names are too long for a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, port: reservePort(t), dir: dir}
	s.args = append([]string{
		"--bind", "127.0.0.1", "--unixsocket", s.socket(), "--dir", dir, "--save", "", "--appendonly", "no",
	}, certificates.args(s.port)...)
	s.args = append(s.args, User(bedUser, bedPassword, "~*", "&*", "+@all")...)
	s.args = append(s.args, args...)
	s.client = redis.NewClient(&redis.Options{
		Network: "unix", Addr: s.socket(), Username: bedUser, Password: bedPassword,
		Protocol: 2, DisableIdentity: true, PoolSize: 4, MaxRetries: -1,
	})
	t.Cleanup(func() {
		_ = s.client.Close()
		s.Stop()
		_ = os.RemoveAll(dir)
	})
	return s
}

func (s *Server) socket() string { return filepath.Join(s.dir, "socket") }

// Addr is the server's host:port.
func (s *Server) Addr() string { return local(s.port) }

// Client is a client for looking into the server. It needs neither TLS nor a
// password of the test, and gets through where a Proxy does not.
func (s *Server) Client() *redis.Client { return s.client }

// Do runs a command that must succeed.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	reply, err := s.client.Do(context.Background(), args...).Result()
	if err != nil {
		s.t.Fatalf("%v at %s: %v", args, s.Addr(), err)
	}
	return reply
}

// Info is a section of INFO by field.
func (s *Server) Info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.client.Info(ctx, section).Result()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}

// Run starts the server, again after Stop, and waits until it answers. A server
// that comes back takes the same port.
func (s *Server) Run(args ...string) {
	s.t.Helper()
	s.Launch(args...)
	s.Await()
}

// Launch is Run without waiting; arguments count for this time only.
func (s *Server) Launch(args ...string) {
	s.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Fatal("redis-server is not installed; make redis-server installs it")
	}
	log, err := os.Create(s.logfile())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	s.cmd = exec.CommandContext(context.Background(), program, append(s.args[:len(s.args):len(s.args)], args...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Pdeathsig follows the thread that starts the process; it is ended by the
	// test's clean-up long before that.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
}

func (s *Server) logfile() string { return filepath.Join(s.dir, "log") }

// Await waits until the server answers.
func (s *Server) Await() {
	s.t.Helper()
	await(s.t, "redis-server does not answer", func(ctx context.Context) error {
		err := s.client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		log, _ := os.ReadFile(s.logfile())
		return fmt.Errorf("%w; its log: %s", err, log)
	})
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

// IsRunning tells that the server was started and not stopped since.
func (s *Server) IsRunning() bool { return s.cmd != nil }

// Pause stops the server in its tracks; its connections stay open.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

func (s *Server) portText() string { return strconv.Itoa(s.port) }
