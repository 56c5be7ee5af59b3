package redis

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Ports come from below the range that systems take for outgoing connections, so
// that nothing takes a server's port while it is stopped. A cluster node uses the
// port that is busDistance higher too.
const (
	firstPort   = 11_000
	ports       = 10_000
	busDistance = 10_000
)

// reservePort picks a port that no other test, of this or another process, is
// given until this one ends.
func reservePort(t testing.TB) int {
	t.Helper()
	locks := filepath.Join(os.TempDir(), "weir-test-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	for range ports {
		port := firstPort + rand.IntN(ports)
		lock := lockFile(t, filepath.Join(locks, strconv.Itoa(port)))
		if lock == nil {
			continue
		}
		if isFree(port) && isFree(port+busDistance) {
			t.Cleanup(func() { _ = lock.Close() })
			return port
		}
		_ = lock.Close()
	}
	t.Fatal("no port is free")
	return 0
}

// lockFile returns nil where somebody else holds the lock. The lock ends with the
// process at the latest.
func lockFile(t testing.TB, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = file.Close()
		return nil
	}
	return file
}

func isFree(port int) bool {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", local(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
