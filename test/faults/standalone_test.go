//go:build faults

package faults

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	redistest "github.com/weir-dev/weir/test/redis"
)

// flushing is how often scripts are flushed.
const flushing = 20 * time.Millisecond

// pair is a server and the way to it.
type pair struct {
	*redistest.Server
	way *redistest.Proxy
}

func TestStandalone(t *testing.T) {
	run(t, []trial{
		{fault: "connections are refused", delivers: true, begin: standalone(func(p pair) func() {
			p.way.Refuse()
			return p.way.Pass
		})},
		{fault: "what is sent vanishes", delivers: true, begin: standalone(func(p pair) func() {
			p.way.BlackHole()
			return p.way.Pass
		})},
		{fault: "replies are cut in the middle", delivers: true, begin: standalone(func(p pair) func() {
			p.way.CutReplies()
			return p.way.Pass
		})},
		{fault: "replies are swallowed after delivery", delivers: true, begin: standalone(func(p pair) func() {
			p.way.SwallowReplies()
			return p.way.Pass
		})},
		{fault: "replies come after 200 ms", delivers: true, begin: standalone(func(p pair) func() {
			p.way.Delay(200 * time.Millisecond)
			return p.way.Pass
		})},
		{fault: "a few replies are lost", delivers: true, begin: standalone(func(p pair) func() {
			p.way.DropReplies(3)
			return p.way.Pass
		})},
		{fault: "the server hangs", begin: standalone(func(p pair) func() {
			p.Pause()
			return p.Resume
		})},
		{fault: "the server restarts empty", loses: true, begin: standalone(func(p pair) func() {
			p.Stop()
			return func() { p.Run() }
		})},
		{fault: "the server loads its data", loses: true, begin: standalone(func(p pair) func() {
			p.RestartLoading(lasting)
			return p.Await
		})},
		{fault: "scripts are flushed all the time", hurts: noneFail, begin: standalone(func(p pair) func() { return flushScripts(p.Server) })},
		{fault: "the server has no memory left", begin: standalone(func(p pair) func() {
			p.Do("CONFIG", "SET", "maxmemory", "1")
			return func() { p.Do("CONFIG", "SET", "maxmemory", "0") }
		})},
		{fault: "the server becomes a replica", begin: standalone(func(p pair) func() {
			p.Do("REPLICAOF", "127.0.0.1", "1") // nobody listens there, so no data comes
			return func() { p.Do("REPLICAOF", "NO", "ONE") }
		})},
		{fault: "the password is another one", begin: standalone(func(p pair) func() {
			p.Do("ACL", "SETUSER", user, "resetpass", ">rotated")
			p.Do("CLIENT", "KILL", "USER", user)
			return func() { p.Do("ACL", "SETUSER", user, "resetpass", ">"+password) }
		})},
	})
}

const user, password = "weir", "secret"

// standalone begins a trial with one server behind a proxy.
func standalone(strike func(pair) func()) func(*testing.T) *site {
	return func(t *testing.T) *site {
		server := redistest.Start(t, redistest.User(user, password, "~rl:*", "+@all")...)
		p := pair{server, redistest.NewProxy(t, server.Addr())}
		// Clients can connect and log in: what is in trouble is decisions.
		p.way.Only(isDecision)
		var delivered atomic.Int64
		p.way.Watch(func(request []string) {
			if isDecision(request) {
				delivered.Add(requestsIn(request))
			}
		})
		return &site{
			servers: 1,
			config: redisstore.Config{
				Mode: v1alpha1.RedisStandalone, Addresses: []string{p.way.Addr()}, Username: user, Password: password,
			},
			strike:    func() func() { return strike(p) },
			counters:  func() map[string]int64 { return countersOf(t, server) },
			delivered: delivered.Load,
		}
	}
}

func isDecision(request []string) bool { return strings.HasPrefix(request[0], "EVAL") }

// requestsIn is how many requests of the load a call of the script decides: each
// has one counter.
func requestsIn(call []string) (n int64) {
	for _, word := range call {
		if isLoad(word) {
			n++
		}
	}
	return n
}

// flushScripts makes servers forget the script again and again.
func flushScripts(servers ...*redistest.Server) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(flushing)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				for _, s := range servers {
					s.Do("SCRIPT", "FLUSH")
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
