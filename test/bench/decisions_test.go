//go:build bench

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
	redistest "github.com/weir-dev/weir/test/redis"
)

const (
	decisionRounds  = 3
	decisionSeconds = 2
	manyKeys        = 10_000
)

// TestDecisionsNextToRedisBenchmark prints decisions a second through the limiter
// on a real Redis, next to redis-benchmark with the same script, in turns.
func TestDecisionsNextToRedisBenchmark(t *testing.T) {
	server := redistest.Start(t)
	sha := server.Client().ScriptLoad(t.Context(), redisstore.Script).Val()
	t.Logf("%8s %14s %18s %8s", "callers", "decisions/s", "redis-benchmark/s", "ratio")
	for _, callers := range []int{1, 64, 256} {
		l := limiterOn(t, storeOn(t, server.Addr(), min(callers, 64)))
		var ours, theirs []float64
		for range decisionRounds {
			ours = append(ours, decide(l, callers))
			theirs = append(theirs, redisBenchmark(t, server.Addr(), sha, callers))
		}
		t.Logf("%8d %14.0f %18.0f %8.2f", callers, median(ours), median(theirs), median(ours)/median(theirs))
	}
}

// decide lets callers decide for a while and returns decisions a second.
func decide(l *limiter.Limiter, callers int) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), decisionSeconds*time.Second)
	defer cancel()
	var total atomic.Int64
	var running sync.WaitGroup
	start := time.Now()
	for range callers {
		running.Go(func() {
			var d limiter.Decision
			user := []string{""}
			req := &policy.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"), Header: map[string][]string{"X-User-Id": user}}
			for ctx.Err() == nil {
				user[0] = "user_" + strconv.Itoa(rand.IntN(manyKeys))
				l.Decide(context.Background(), req, &d)
				total.Add(1)
			}
		})
	}
	running.Wait()
	return float64(total.Load()) / time.Since(start).Seconds()
}

var benchmarkRate = regexp.MustCompile(`([0-9.]+) requests per second`)

// redisBenchmark calls the script for one check a call from so many connections.
func redisBenchmark(t *testing.T, address, sha string, callers int) float64 {
	t.Helper()
	const year = 366 * 24 * 60 * 60
	key := fmt.Sprint("rl:{user___rand_int__}:shop/bench/per-user:", year, ":", time.Now().Unix()/year)
	arguments := fmt.Sprint("0 1 1 1000000000 ", year, " ", time.Now().Unix()/year, " 1 1")
	args := []string{"-p", address[strings.LastIndexByte(address, ':')+1:], "-c", strconv.Itoa(callers), "-n", strconv.Itoa(50_000 * min(callers, 4)),
		"-r", strconv.Itoa(manyKeys), "-q", "EVALSHA", sha, "2", key, key + ":denied"}
	out, err := exec.CommandContext(t.Context(), program(t, "redis-benchmark"), append(args, strings.Fields(arguments)...)...).CombinedOutput()
	found := benchmarkRate.FindAllSubmatch(out, -1)
	if err != nil || len(found) == 0 {
		t.Fatalf("redis-benchmark: %v\n%s", err, out)
	}
	rate, _ := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
	return rate
}
