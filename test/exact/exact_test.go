//go:build exact

package exact

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
	redistest "github.com/weir-dev/weir/test/redis"
)

const (
	workers = 4
	callers = 16
	limit   = 500
	window  = 5 // seconds
)

const spec = `{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"selector": {}, "rules": [
	{"name": "all", "limit": 500, "window": "5s"}]}}`

// job tells a worker what to do.
type job struct {
	Address string
	Windows int
	// Jitter is the largest error in naming windows, Delay the longest wait
	// between naming and sending, Skew the clock's error, Step how much it steps
	// every second, all in nanoseconds.
	Jitter, Delay, Skew, Step time.Duration
}

func TestMain(m *testing.M) {
	if text := os.Getenv("WEIR_EXACT_JOB"); text != "" {
		os.Exit(work(text))
	}
	os.Exit(m.Run())
}

// windows is how many full windows a scenario runs, EXACT_WINDOWS or 20.
func windows() int {
	if n, err := strconv.Atoi(os.Getenv("EXACT_WINDOWS")); err == nil && n > 0 {
		return n
	}
	return 20
}

func TestEveryFullWindowAdmitsExactlyTheLimit(t *testing.T) {
	for _, scenario := range []struct {
		name string
		jobs func(worker int) job
	}{
		{"clocks are right", func(int) job { return job{} }},
		{"windows are named up to 5 ms wrong and sent up to 5 ms late", func(int) job {
			return job{Jitter: 5 * time.Millisecond, Delay: 5 * time.Millisecond}
		}},
		{"clocks are 30 s apart and step", func(worker int) job {
			return job{Skew: time.Duration(worker-2) * 15 * time.Second, Step: time.Duration(worker-1) * 10 * time.Second}
		}},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			address := redistest.Start(t).Addr()
			admitted := map[int64]int{}
			var mu sync.Mutex
			var running sync.WaitGroup
			for worker := range workers {
				j := scenario.jobs(worker)
				j.Address, j.Windows = address, windows()
				running.Go(func() {
					for end, n := range runWorker(t, j) {
						mu.Lock()
						admitted[end] += n
						mu.Unlock()
					}
				})
			}
			running.Wait()
			judge(t, admitted)
		})
	}
}

// judge looks at all windows but the first and the last, which are not full.
func judge(t *testing.T, admitted map[int64]int) {
	t.Helper()
	first, last := int64(1<<62), int64(0)
	for end := range admitted {
		first, last = min(first, end), max(last, end)
	}
	full := 0
	for end := first + window; end < last; end += window {
		full++
		if admitted[end] != limit {
			t.Errorf("the window that ends at %d admits %d, want %d", end, admitted[end], limit)
		}
	}
	if full < windows()-1 {
		t.Errorf("%d full windows, want %d", full, windows()-1)
	}
	t.Logf("%d full windows of %d", full, limit)
}

// runWorker runs an enforcer process and returns what it admitted by window.
func runWorker(t *testing.T, j job) map[int64]int {
	text, err := json.Marshal(j)
	if err != nil {
		t.Error(err)
		return nil
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "WEIR_EXACT_JOB="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("worker: %v", err)
		return nil
	}
	admitted := map[int64]int{}
	if err := json.Unmarshal(out, &admitted); err != nil {
		t.Error(err)
	}
	return admitted
}

// clock is a wrong clock. The store reads it to name windows, so what it waits
// after a reading lies between the naming and the sending.
type clock struct {
	start time.Time
	job   job
}

// now reads the clock, and waits.
func (c clock) now() time.Duration {
	elapsed := time.Since(c.start)
	reading := elapsed + c.job.Skew + time.Duration(int64(c.job.Step)*(int64(elapsed/time.Second)%7))
	if c.job.Jitter > 0 {
		reading += time.Duration(rand.Int64N(int64(2*c.job.Jitter))) - c.job.Jitter
	}
	if c.job.Delay > 0 {
		<-time.After(time.Duration(rand.Int64N(int64(c.job.Delay))))
	}
	return reading
}

// work is a worker process: callers that send all the time.
func work(text string) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l, closeStore, err := newLimiter(j)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer closeStore()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(j.Windows+1)*window*time.Second)
	defer cancel()
	admitted := map[int64]int{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for range callers {
		running.Go(func() { call(ctx, l, &mu, admitted) })
	}
	running.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(admitted); err != nil {
		return 1
	}
	return 0
}

func newLimiter(j job) (*limiter.Limiter, func(), error) {
	p, err := policy.DecodePolicy([]byte(spec))
	if err != nil {
		return nil, nil, err
	}
	compiled, err := policy.Compile(p, policy.Defaults{})
	if err != nil {
		return nil, nil, err
	}
	store, err := redisstore.New(redisstore.Config{Addresses: []string{j.Address}, Timeout: 10 * time.Second, DialTimeout: 10 * time.Second,
		Now: clock{time.Now(), j}.now})
	if err != nil {
		return nil, nil, err
	}
	l := limiter.New(limiter.Options{})
	l.Swap(&limiter.Snapshot{Set: policy.NewSet([]*policy.Policy{compiled}), Backends: []*limiter.Backend{{Store: store, Budget: 10 * time.Second}}})
	return l, func() { _ = store.Close() }, nil
}

// pace is how often a caller sends: 64 callers send some 2,000 requests a second,
// four times what the limit admits, and leave the machine time for the rest.
const pace = 30 * time.Millisecond

func call(ctx context.Context, l *limiter.Limiter, mu *sync.Mutex, admitted map[int64]int) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	var d limiter.Decision
	req := &policy.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1")}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.Decide(context.Background(), req, &d)
		if d.Outcome == limiter.Allowed && len(d.Quotas) == 1 {
			mu.Lock()
			admitted[d.Quotas[0].Reset]++
			mu.Unlock()
		}
	}
}

// TestRequestsAreChargedToAllRulesOrNone sends requests that a tight rule denies
// most of, from several processes' worth of callers, and compares the other
// rule's counter with what was admitted.
func TestRequestsAreChargedToAllRulesOrNone(t *testing.T) {
	server := redistest.Start(t)
	store, err := redisstore.New(redisstore.Config{Addresses: []string{server.Addr()}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	const year = 366 * 24 * 60 * 60
	admitted := make([]int, 64)
	var running sync.WaitGroup
	for caller := range admitted {
		running.Go(func() {
			for range 200 {
				op := &limiter.Op{Checks: []limiter.Check{
					{Key: fmt.Sprint("tight", caller%8, ":"), Limit: 50, Window: year, Cost: 1},
					{Key: "wide:", Limit: 1 << 40, Window: year, Cost: 1},
				}}
				store.Do(context.Background(), []*limiter.Op{op})
				if op.Err == nil && !op.Denied {
					admitted[caller]++
				}
			}
		})
	}
	running.Wait()
	total := 0
	for _, n := range admitted {
		total += n
	}
	counted, _ := server.Client().Get(t.Context(), fmt.Sprint("wide:", time.Now().Unix()/year)).Int()
	if total != 8*50 || counted != total {
		t.Errorf("%d admitted, %d counted, want %d", total, counted, 8*50)
	}
}
