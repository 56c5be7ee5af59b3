//go:build bench

package bench

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/test/bench/measure"
	redistest "github.com/weir-dev/weir/test/redis"
)

const (
	// million is how many counters just fit before Redis doubles its tables.
	million = 1<<20 - 1
	// mostCounterMemory is what a live counter may take in Redis, in bytes: 150 MB
	// for a million.
	mostCounterMemory = 150
	// mostCallerMemory is what so many callers may leave in an enforcer, in bytes,
	// and mostCallerGrowth what may come after the first quarter of them.
	mostCallerMemory = 64e6
	mostCallerGrowth = 8e6
)

const megabyte = 1e6

// TestMemoryOfCounters measures what live counters take in Redis. Its keys are as
// long as those of a window of a minute, and do not expire meanwhile.
func TestMemoryOfCounters(t *testing.T) {
	const day = 24 * 60 * 60
	server := redistest.Start(t)
	before := usedMemory(t, server)
	number := strconv.FormatInt(time.Now().Unix()/day, 10)
	fill(t, server, measure.Users(million), day, func(user string) string {
		return "rl:{" + user + "}:shop/storefront/per-user:" + strconv.Itoa(day) + ":" + number
	})
	used := usedMemory(t, server) - before
	if keys := server.Client().DBSize(t.Context()).Val(); keys != million {
		t.Fatalf("%d counters, want %d: if the day has just turned, try again", keys, million)
	}
	table := measure.NewTable("memory of Redis", "", "counters", "MB", "bytes a counter")
	table.Row("live counters", million, used/megabyte, used/million)
	table.Print(t)
	measure.AtMost(t, "bytes a counter", used/million, mostCounterMemory)
}

func usedMemory(t *testing.T, server *redistest.Server) float64 {
	t.Helper()
	used, err := strconv.ParseFloat(info(t, server, "used_memory"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// TestMemoryOfCallers measures what many distinct callers leave in an enforcer's
// memory: something, but not something for each.
func TestMemoryOfCallers(t *testing.T) {
	table := measure.NewTable("memory of an enforcer, MB", "callers", "a quarter of a million", "a million")
	for _, c := range []struct {
		name    string
		limit   int64
		outcome limiter.Outcome
		store   func(t *testing.T) limiter.Store
	}{
		{"allowed by Redis", measure.NeverReached, limiter.Allowed, onRedis},
		{"denied by Redis", 0, limiter.Denied, onRedis},
		{"allowed in memory", measure.NeverReached, limiter.Allowed, inMemory},
		{"denied in memory", 0, limiter.Denied, inMemory},
	} {
		l := measure.Limiter(t, c.store(t), c.limit)
		before := liveHeap()
		visit(t, l, c.outcome, 0, million/4)
		early := liveHeap() - before
		visit(t, l, c.outcome, million/4, million)
		late := liveHeap() - before
		table.Row(c.name, early/megabyte, late/megabyte)
		measure.AtMost(t, c.name+": MB for a million callers", late/megabyte, mostCallerMemory/megabyte)
		measure.AtMost(t, c.name+": MB more for the last three quarters", (late-early)/megabyte, mostCallerGrowth/megabyte)
		runtime.KeepAlive(l)
	}
	table.Print(t)
}

func onRedis(t *testing.T) limiter.Store { return measure.Store(t, redistest.Start(t).Addr()) }

func inMemory(*testing.T) limiter.Store { return memstore.New(time.Now, 0) }

// visit lets the users from..to, without the last, ask once each.
func visit(t *testing.T, l *limiter.Limiter, want limiter.Outcome, from, to int64) {
	t.Helper()
	const callers = 128
	var next atomic.Int64
	next.Store(from)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			decide := measure.Decide(l, want)
			for i := next.Add(1) - 1; i < to; i = next.Add(1) - 1 {
				if err := decide("user_" + strconv.FormatInt(i, 10)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// liveHeap is what is reachable, in bytes. Pools let go of what they keep at the
// second collection.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
