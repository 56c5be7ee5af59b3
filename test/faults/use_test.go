//go:build faults

package faults

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// use is what the process holds on to.
type use struct {
	goroutines int
	heap       uint64
}

// The test bed's own goroutines do not count, nor those of callers' connections, which
// come and go with the load.
func used() use {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	u := use{heap: memory.HeapAlloc}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if !strings.Contains(stack, "/test/redis.") && !strings.Contains(stack, "created by net/http.") {
			u.goroutines++
		}
	}
	return u
}

// compare waits until no more is in use than before and a tenth, and what comes
// and goes: some goroutines, and the buffers of a full pool of connections to each
// server.
func (u use) compare(t *testing.T, servers int) {
	t.Helper()
	const fewGoroutines, poolHeap = 10, 16 * 64 << 10
	littleHeap := uint64(servers+1) * poolHeap
	var problem error
	for began := time.Now(); time.Since(began) < healing; <-time.After(budget) {
		now := used()
		switch {
		case now.goroutines > u.goroutines+u.goroutines/10+fewGoroutines:
			problem = fmt.Errorf("%d goroutines, %d before", now.goroutines, u.goroutines)
		case now.heap > u.heap+u.heap/10+littleHeap:
			problem = fmt.Errorf("%d bytes in use, %d before", now.heap, u.heap)
		default:
			return
		}
	}
	t.Error(problem)
}
