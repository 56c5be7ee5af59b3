//go:build exact

package exact

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// workers is how many enforcer processes there are, where nothing else is said.
const workers = 8

// crew are worker processes, and what those that ended in peace have seen.
type crew struct {
	t     *testing.T
	mu    sync.Mutex
	total report
}

func newCrew(t *testing.T) *crew { return &crew{t: t, total: newReport()} }

// worker is a process.
type worker struct {
	crew *crew
	cmd  *exec.Cmd
	in   io.Closer
	out  bytes.Buffer
}

// hire starts a worker.
func (c *crew) hire(j job) *worker {
	c.t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		c.t.Fatal(err)
	}
	w := &worker{crew: c, cmd: exec.CommandContext(c.t.Context(), os.Args[0])}
	w.cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	w.cmd.Stdout, w.cmd.Stderr = &w.out, os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return w
}

// stop has a worker end before its time, and takes its report. The end of its
// input reaches also one that has hardly begun, which a signal would kill.
func (w *worker) stop() {
	_ = w.in.Close() // it may have ended
	w.wait()
}

// wait waits for a worker's end, and takes its report.
func (w *worker) wait() {
	if err := w.cmd.Wait(); err != nil {
		w.crew.t.Errorf("worker: %v", err)
		return
	}
	var r report
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		w.crew.t.Errorf("report %q: %v", w.out.String(), err)
		return
	}
	w.crew.mu.Lock()
	defer w.crew.mu.Unlock()
	w.crew.total.add(r)
}

// kill ends a worker at once, whatever it is doing.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait() // says that it was killed
}

// run has workers do their jobs, and returns what all of them saw.
func run(t *testing.T, n int, jobOf func(worker int) job) report {
	t.Helper()
	c := newCrew(t)
	var hired []*worker
	for i := range n {
		hired = append(hired, c.hire(jobOf(i)))
	}
	for _, w := range hired {
		w.wait()
	}
	return c.total
}

// judgement says what a rule's windows must be.
type judgement struct {
	rule   string
	window int64 // seconds
	limit  int64
	// exactly wants each full window to admit the limit, not just no more.
	exactly bool
	// after is where full windows begin to count, in Unix seconds.
	after int64
	// full is how many full windows there must be at least, of each counter.
	full int
}

// judge looks at all windows of a rule's counters. The first and the last are not
// full. It returns by how much windows are over.
func (j judgement) judge(t *testing.T, r report) (excess int64) {
	t.Helper()
	counters, full := 0, 0
	for counter, windows := range r.Admitted {
		if counter == j.rule || strings.HasPrefix(counter, j.rule+" ") {
			whole, over := j.judgeCounter(t, counter, windows)
			counters, full, excess = counters+1, full+whole, excess+over
		}
	}
	if counters == 0 {
		t.Errorf("nothing is admitted by rule %s", j.rule)
	}
	t.Logf("%s: %d counters, %d full windows of %d s, limit %d, %d over in all", j.rule, counters, full, j.window, j.limit, excess)
	return excess
}

func (j judgement) judgeCounter(t *testing.T, counter string, windows map[int64]int64) (full int, excess int64) {
	t.Helper()
	first, last := int64(1<<62), int64(0)
	for end := range windows {
		first, last = min(first, end), max(last, end)
	}
	for end := first; end <= last; end += j.window {
		n := windows[end]
		excess += max(n-j.limit, 0)
		if end == first || end == last || end-j.window < j.after {
			continue
		}
		full++
		if j.exactly && n != j.limit {
			t.Errorf("%s: the window that ends at %d admits %d, want %d", counter, end, n, j.limit)
		}
	}
	if full < j.full {
		t.Errorf("%s: %d full windows, want %d", counter, full, j.full)
	}
	return full, excess
}

// never wants no window to be over.
func (j judgement) never(t *testing.T, r report) {
	t.Helper()
	if excess := j.judge(t, r); excess > 0 {
		t.Errorf("rule %s admits %d more than its limit", j.rule, excess)
	}
}
