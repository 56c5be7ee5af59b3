package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// MasterName is what the Sentinels call their primary.
const MasterName = "weir"

// sentinels is how many Sentinels watch; two must agree.
const (
	sentinels = 3
	replicas  = 2
)

// SentinelOptions are what a group may need beside servers.
type SentinelOptions struct {
	// Password is the data servers', SentinelPassword the Sentinels'. Default to
	// none.
	Password, SentinelPassword string
	// TLS is for data servers and Sentinels. Defaults to none.
	TLS *Certificates
	// Args go to every data server.
	Args []string
}

// Sentinels is a primary with two replicas and three Sentinels that watch them
// and are quick to act.
type Sentinels struct {
	t         testing.TB
	options   SentinelOptions
	data      []*Server
	sentinels []*Server
}

// StartSentinels starts a group, and waits until all agree.
func StartSentinels(t testing.TB, options SentinelOptions) *Sentinels {
	t.Helper()
	g := &Sentinels{t: t, options: options}
	args := append([]string{"--repl-diskless-sync-delay", "0"}, options.Args...)
	if options.Password != "" {
		args = append(args, "--requirepass", options.Password, "--masterauth", options.Password)
	}
	primary := prepare(t, options.TLS, args...)
	g.data = append(g.data, primary)
	for range replicas {
		g.data = append(g.data, prepare(t, options.TLS, append(args[:len(args):len(args)], "--replicaof", "127.0.0.1", primary.portText())...))
	}
	startAll(g.data)
	g.awaitReplicas(primary)
	for range sentinels {
		g.sentinels = append(g.sentinels, g.prepareSentinel(primary))
	}
	startAll(g.sentinels)
	for _, s := range g.sentinels {
		// Since Redis 7.0; older ones take longer to learn of each other.
		_ = s.client.Do(context.Background(), "SENTINEL", "DEBUG", "info-period", "200", "publish-period", "200").Err()
	}
	g.AwaitSettled()
	return g
}

func startAll(servers []*Server) {
	for _, s := range servers {
		s.t.Helper()
		s.Launch()
	}
	for _, s := range servers {
		s.Await()
	}
}

// prepareSentinel turns a server's arguments into the file that a Sentinel keeps
// what it knows in.
func (g *Sentinels) prepareSentinel(primary *Server) *Server {
	s := prepare(g.t, g.options.TLS)
	var file strings.Builder
	for _, arg := range s.args {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			file.WriteString("\n" + name)
		} else {
			file.WriteString(" " + strconv.Quote(arg))
		}
	}
	fmt.Fprintf(&file, "\nsentinel monitor %s 127.0.0.1 %s 2", MasterName, primary.portText())
	for _, line := range []string{"down-after-milliseconds %s 500", "failover-timeout %s 2000", "parallel-syncs %s 2"} {
		fmt.Fprintf(&file, "\nsentinel "+line, MasterName)
	}
	if g.options.Password != "" {
		fmt.Fprintf(&file, "\nsentinel auth-pass %s %s", MasterName, g.options.Password)
	}
	if g.options.SentinelPassword != "" {
		fmt.Fprintf(&file, "\nrequirepass %[1]s\nsentinel sentinel-pass %[1]s", g.options.SentinelPassword)
	}
	path := filepath.Join(s.dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(file.String()+"\n"), 0o600); err != nil {
		g.t.Fatal(err)
	}
	s.args = []string{path, "--sentinel"}
	return s
}

// Addresses are the Sentinels'.
func (g *Sentinels) Addresses() []string { return addresses(g.sentinels) }

func addresses(servers []*Server) []string {
	list := make([]string, 0, len(servers))
	for _, s := range servers {
		list = append(list, s.Addr())
	}
	return list
}

// Sentinels are the servers that watch.
func (g *Sentinels) Sentinels() []*Server { return g.sentinels }

// Data are the primary and its replicas, in no order.
func (g *Sentinels) Data() []*Server { return g.data }

// Primary is the server that the first running Sentinel calls the primary.
func (g *Sentinels) Primary() *Server {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, s := range g.sentinels {
		if s.IsRunning() {
			primary, err := g.primaryOf(ctx, s)
			if err != nil {
				g.t.Fatal(err)
			}
			return primary
		}
	}
	g.t.Fatal("no Sentinel is running")
	return nil
}

func (g *Sentinels) primaryOf(ctx context.Context, sentinel *Server) (*Server, error) {
	address, err := sentinel.client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).StringSlice()
	if err != nil {
		return nil, err
	}
	for _, s := range g.data {
		if len(address) == 2 && address[1] == s.portText() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the primary at %v is not of this group", address)
}

// Failover has a Sentinel make a replica the primary while the old one is well,
// and waits until all have settled. It returns the old primary, which is a
// replica afterwards. Clients of the old one stay connected.
func (g *Sentinels) Failover() *Server {
	g.t.Helper()
	old := g.Primary()
	g.BeginFailover()
	g.AwaitOtherThan(old)
	g.AwaitSettled()
	return old
}

// BeginFailover is Failover without waiting.
func (g *Sentinels) BeginFailover() {
	g.t.Helper()
	await(g.t, "no Sentinel begins a failover", func(ctx context.Context) error {
		return g.sentinels[0].client.Do(ctx, "SENTINEL", "FAILOVER", MasterName).Err()
	})
}

// KillPrimary stops the primary for the Sentinels to notice, and waits until
// another one is agreed on. It returns the dead one; run again, it becomes a
// replica.
func (g *Sentinels) KillPrimary() *Server {
	g.t.Helper()
	old := g.Primary()
	old.Stop()
	g.AwaitOtherThan(old)
	g.AwaitSettled()
	return old
}

// AwaitOtherThan waits until all running Sentinels have left a primary.
func (g *Sentinels) AwaitOtherThan(old *Server) {
	g.t.Helper()
	await(g.t, "the Sentinels keep their primary", func(ctx context.Context) error {
		for _, s := range g.sentinels {
			if !s.IsRunning() {
				continue
			}
			if primary, err := g.primaryOf(ctx, s); err != nil || primary == old {
				return errors.Join(err, fmt.Errorf("sentinel %s names %s", s.Addr(), old.Addr()))
			}
		}
		return nil
	})
}
