package measure

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Caller makes what the i-th of several callers does over and over. What it
// returns is called by one goroutine; an error is an operation that went wrong.
type Caller func(i int) func() error

// Round is what one round of load showed.
type Round struct {
	// Rate is operations a second.
	Rate float64
	// P50 and P99 are how long one operation took; 0 where nobody measured it.
	P50, P99 time.Duration
	// Own is the processor time of this process for one operation.
	Own time.Duration
	// Server is the processor time of the server for one operation; 0 where there
	// is none.
	Server time.Duration
}

// Load lets callers work at the same time for a while. It fails tb if an
// operation went wrong.
func Load(tb testing.TB, callers int, length time.Duration, caller Caller) Round {
	tb.Helper()
	workers := make([]*worker, callers)
	for i := range workers {
		workers[i] = &worker{do: caller(i)}
	}
	cpu := ownCPU()
	start := time.Now()
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(func() { w.work(start.Add(length)) })
	}
	running.Wait()
	took := time.Since(start)
	cpu = ownCPU() - cpu

	var all []time.Duration
	for _, w := range workers {
		if w.err != nil {
			tb.Fatalf("one of %d callers: %v", callers, w.err)
		}
		all = append(all, w.took...)
	}
	slices.Sort(all)
	return Round{
		Rate: float64(len(all)) / took.Seconds(),
		P50:  percentile(all, 50),
		P99:  percentile(all, 99),
		Own:  cpu / time.Duration(len(all)),
	}
}

// worker is one caller at work.
type worker struct {
	do   func() error
	took []time.Duration // by operation
	err  error
}

// work repeats the operation until end, at least once.
func (w *worker) work(end time.Time) {
	for before := time.Now(); ; {
		if w.err = w.do(); w.err != nil {
			return
		}
		after := time.Now()
		w.took = append(w.took, after.Sub(before))
		if !after.Before(end) {
			return
		}
		before = after
	}
}

// ownCPU is the processor time that this process has used.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
