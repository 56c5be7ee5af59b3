package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial returns a client as a test's subject would have one: without retries.
func dial(t testing.TB, opts redis.Options) *redis.Client {
	opts.Protocol, opts.DisableIdentity, opts.MaxRetries, opts.DialerRetries, opts.ContextTimeoutEnabled = 2, true, -1, 1, true
	client := redis.NewClient(&opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestServerComesBackEmptyAtTheSameAddress(t *testing.T) {
	t.Parallel()
	s := Start(t)
	client := dial(t, redis.Options{Addr: s.Addr()})
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("a stopped server answers")
	}
	s.Run()
	if n, err := client.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys, %v; want none", n, err)
	}
}

func TestServerIsGoneAfterTheTest(t *testing.T) {
	t.Parallel()
	var s *Server
	t.Run("a test that pauses a server and forgets it", func(t *testing.T) {
		s = Start(t)
		s.Pause()
	})
	if s.IsRunning() || !isFree(s.port) {
		t.Error("the server is still there")
	}
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("its directory is still there")
	}
}

func TestPortsAreGivenOnce(t *testing.T) {
	t.Parallel()
	given := map[int]bool{}
	for range 300 {
		port := reservePort(t)
		if given[port] {
			t.Fatalf("port %d is given twice", port)
		}
		given[port] = true
	}
}

func TestServerWithUsers(t *testing.T) {
	t.Parallel()
	s := Start(t, append(User("weir", "secret", "~rl:*", "+incr"), "--requirepass", "admin")...)
	for _, test := range []struct {
		reason, user, password, key string
		wants                       bool
	}{
		{"a user may do what the rules say", "weir", "secret", "rl:a", true},
		{"and nothing else", "weir", "secret", "other", false},
		{"a wrong password is refused", "weir", "wrong", "rl:a", false},
		{"the default user has the password of the server", "", "admin", "other", true},
		{"nobody gets in without", "", "", "rl:a", false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			client := dial(t, redis.Options{Addr: s.Addr(), Username: test.user, Password: test.password})
			if err := client.Incr(t.Context(), test.key).Err(); (err == nil) != test.wants {
				t.Errorf("answer %v, want success %v", err, test.wants)
			}
		})
	}
	if err := s.Client().Get(t.Context(), "other").Err(); err != nil {
		t.Errorf("the bed's own client: %v", err)
	}
}

func TestServerWithTLS(t *testing.T) {
	t.Parallel()
	certificates := NewCertificates(t)
	s := StartTLS(t, certificates)
	stranger := NewCertificates(t).Config(t)
	withoutCertificate := certificates.Config(t)
	withoutCertificate.Certificates = nil
	for _, test := range []struct {
		reason string
		config *tls.Config
		wants  bool
	}{
		{"a client with certificate", certificates.Config(t), true},
		{"a client of another authority", stranger, false},
		{"a client without certificate", withoutCertificate, false},
		{"a client without TLS", nil, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			client := dial(t, redis.Options{Addr: s.Addr(), TLSConfig: test.config})
			if err := client.Ping(t.Context()).Err(); (err == nil) != test.wants {
				t.Errorf("answer %v, want success %v", err, test.wants)
			}
		})
	}
}

func TestServerThatLoadsSaysSo(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.Do("SET", "k", "v")
	s.RestartLoading(2 * time.Second)
	client := dial(t, redis.Options{Addr: s.Addr()})
	await(t, "the server does not say that it loads", func(ctx context.Context) error {
		if err := client.Get(ctx, "k").Err(); !redis.HasErrorPrefix(err, "LOADING") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	s.Await()
	if v := client.Get(t.Context(), "k").Val(); v != "v" {
		t.Errorf("the key holds %q afterwards", v)
	}
}
