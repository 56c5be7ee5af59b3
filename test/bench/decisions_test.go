//go:build bench

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/test/bench/measure"
	redistest "github.com/weir-dev/weir/test/redis"
)

const (
	decisionRounds = 5
	decisionLength = time.Second
	manyKeys       = 10_000
)

// leastGain is how many times as many decisions the limiter must make a second
// as callers that call the script once for each.
var leastGain = []struct {
	callers int
	gain    float64
}{{1, 0.95}, {16, 0.95}, {64, 1.7}, {256, 3.5}}

const (
	// leastOfBatches is the part of what redis-benchmark reaches with 32 checks a
	// call that the limiter must reach with 256 callers.
	leastOfBatches = 0.5
	// leastBatchGain is what 32 checks a call must gain over pipelined single ones.
	leastBatchGain = 1.5
)

// TestAllowedDecisions measures decisions through the limiter on a real Redis,
// next to the same script called once for each, and to redis-benchmark.
func TestAllowedDecisions(t *testing.T) {
	b := newDecisionBench(t, measure.Store, measure.NeverReached, limiter.Allowed)
	for _, connections := range []int{1, 64, 256} {
		b.redisBenchmark("redis-benchmark", benchmark{connections: connections, pipeline: 1, checks: 1, calls: 15_000 * min(connections, 3)})
	}
	pipelined := b.redisBenchmark("redis-benchmark, pipeline of 32", benchmark{connections: 50, pipeline: 32, checks: 1, calls: 200_000})
	batched := b.redisBenchmark("redis-benchmark, 32 checks a call", benchmark{connections: 50, pipeline: 1, checks: 32, calls: 10_000})
	b.measure("decisions, all allowed")
	most := b.limited[len(b.limited)-1].Median().Rate
	measure.AtLeast(t, "256 callers, of redis-benchmark with 32 checks a call", most/batched.Median().Rate, leastOfBatches)
	measure.AtLeast(t, "32 checks a call, over pipelined single ones", batched.Median().Rate/pipelined.Median().Rate, leastBatchGain)
}

// TestDeniedDecisions measures the same where every counter is over its limit: as
// an enforcer does it, which remembers, and with the store alone, which asks Redis
// each time as it does for the first request that is over.
func TestDeniedDecisions(t *testing.T) {
	for name, open := range map[string]opener{"remembered": measure.Store, "asked": measure.Asking} {
		t.Run(name, func(t *testing.T) {
			newDecisionBench(t, open, 1, limiter.Denied).measure("decisions, all denied, " + name)
		})
	}
}

// opener opens a store at an address.
type opener func(tb testing.TB, address string) limiter.Store

// decisionBench is what takes turns on one Redis.
type decisionBench struct {
	t       *testing.T
	server  *redistest.Server
	pid     int
	limited []*measure.Contender // by leastGain
	singles []*measure.Contender // likewise
	others  []*measure.Contender // redis-benchmark
}

// newDecisionBench prepares a Redis on which every user has used up a limit of 1.
func newDecisionBench(t *testing.T, open opener, limit int64, outcome limiter.Outcome) *decisionBench {
	server := redistest.Start(t)
	b := &decisionBench{t: t, server: server, pid: pidOf(t, server)}
	users := measure.Users(manyKeys)
	fill(t, server, users, measure.Window, measure.Key)
	l := measure.Limiter(t, open(t, server.Addr()), limit)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	for _, bound := range leastGain {
		b.limited = append(b.limited, b.contender("Weir", bound.callers, measure.Decisions(l, users, outcome)))
		b.singles = append(b.singles, b.contender("EVALSHA for each", bound.callers, singles(client, users, limit, outcome == limiter.Denied)))
	}
	return b
}

func (b *decisionBench) contender(name string, callers int, caller measure.Caller) *measure.Contender {
	return &measure.Contender{Name: fmt.Sprintf("%3d  %s", callers, name), Run: func() measure.Round {
		return measure.Serving(b.pid, func() measure.Round { return measure.Load(b.t, callers, decisionLength, caller) })
	}}
}

func (b *decisionBench) redisBenchmark(name string, load benchmark) *measure.Contender {
	c := &measure.Contender{Name: fmt.Sprintf("%3d  %s", load.connections, name), Run: func() measure.Round {
		return measure.Serving(b.pid, func() measure.Round { return load.run(b.t, b.server.Addr()) })
	}}
	b.others = append(b.others, c)
	return c
}

// measure takes the rounds, prints them and judges the gain.
func (b *decisionBench) measure(title string) {
	b.t.Helper()
	var all []*measure.Contender
	for i := range b.limited {
		all = append(all, b.limited[i], b.singles[i])
	}
	measure.Alternate(decisionRounds, append(all, b.others...)...)
	table := measure.NewTable(title, "callers, through", "a second", "ratio", "p50", "p99", "CPU here", "CPU Redis")
	gains := make([]float64, len(leastGain))
	for i := range leastGain {
		ours, theirs := b.limited[i].Median(), b.singles[i].Median()
		gains[i] = ours.Rate / theirs.Rate
		table.Row(b.limited[i].Name, ours.Rate, gains[i], ours.P50, ours.P99, ours.Own, ours.Server)
		table.Row(b.singles[i].Name, theirs.Rate, 1.0, theirs.P50, theirs.P99, theirs.Own, theirs.Server)
	}
	for _, c := range b.others {
		table.Row(c.Name, c.Median().Rate, nil, nil, nil, nil, c.Median().Server)
	}
	table.Print(b.t)
	for i, bound := range leastGain {
		measure.AtLeast(b.t, fmt.Sprintf("%d callers, over EVALSHA for each", bound.callers), gains[i], bound.gain)
	}
}

// fill loads the script and charges 1 on the counter of each user.
func fill(t *testing.T, server *redistest.Server, users []string, window int64, key func(user string) string) {
	t.Helper()
	if err := server.Client().ScriptLoad(t.Context(), redisstore.Script).Err(); err != nil {
		t.Fatal(err)
	}
	const batch = 1000
	for len(users) > 0 {
		n := min(batch, len(users))
		counters := make([]string, n)
		for i, user := range users[:n] {
			counters[i] = key(user)
		}
		admitted, err := charge(t.Context(), server.Client(), measure.NeverReached, window, counters...)
		if err != nil || admitted[0] != 1 {
			t.Fatalf("fill: %d admitted for %s: %v", admitted, counters[0], err)
		}
		users = users[n:]
	}
}

// pidOf is the server's process.
func pidOf(t *testing.T, server *redistest.Server) int {
	t.Helper()
	pid, err := strconv.Atoi(info(t, server, "process_id"))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// info is one field of what Redis says about itself.
func info(t *testing.T, server *redistest.Server, field string) string {
	t.Helper()
	all, err := server.Client().Info(t.Context()).Result()
	_, rest, ok := strings.Cut(all, "\r\n"+field+":")
	if err != nil || !ok {
		t.Fatalf("INFO has no %s: %v", field, err)
	}
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
