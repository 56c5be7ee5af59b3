//go:build exact

package exact

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// jobVariable is how a worker process is given its job.
const jobVariable = "WEIR_EXACT_JOB"

// callers are those of one worker.
const callers = 16

// patience is how long a decision may take: a busy machine is no reason to fail.
const patience = 10 * time.Second

// job tells a worker what to do.
type job struct {
	Mode      v1alpha1.RedisMode
	Addresses []string
	Master    string
	// Policies are in JSON.
	Policies []string
	// Lasting is how long the worker sends unless its input ends, Pace how often
	// each caller does.
	Lasting, Pace time.Duration
	// Methods are what each request has one of. Defaults to GET.
	Methods []string
	// Users and Paths are among how many callers choose at random. Defaults to one.
	Users, Paths int
	// Jitter is the largest error in naming windows, Delay the longest wait
	// between naming and sending, Skew the clock's error, Step how much it steps
	// every second.
	Jitter, Delay, Skew, Step time.Duration
}

// report is what a worker saw.
type report struct {
	// Admitted is by counter and the end of its window.
	Admitted map[string]map[int64]int64
	// Allowed, Denied and Failed are requests.
	Allowed, Denied, Failed int64
	// InDoubt is how many of those that failed may be charged.
	InDoubt int64
	// Least is the least that was ever remaining.
	Least int64
}

func newReport() report { return report{Admitted: map[string]map[int64]int64{}, Least: 1 << 62} }

func (r *report) admit(counter string, end, n int64) {
	if r.Admitted[counter] == nil {
		r.Admitted[counter] = map[int64]int64{}
	}
	r.Admitted[counter][end] += n
}

// admitted is what all counters of a rule admitted.
func (r *report) admitted(rule string) (total int64) {
	for counter, windows := range r.Admitted {
		if counter != rule && !strings.HasPrefix(counter, rule+" ") {
			continue
		}
		for _, n := range windows {
			total += n
		}
	}
	return total
}

func (r *report) add(other report) {
	for counter, windows := range other.Admitted {
		for end, n := range windows {
			r.admit(counter, end, n)
		}
	}
	r.Allowed += other.Allowed
	r.Denied += other.Denied
	r.Failed += other.Failed
	r.InDoubt += other.InDoubt
	r.Least = min(r.Least, other.Least)
}

func TestMain(m *testing.M) {
	text := os.Getenv(jobVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := work(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work is a worker process: callers that send all the time.
func work(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	unsure := new(doubts)
	l, closeAll, err := newLimiter(j, unsure)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.Lasting)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	reports := make([]report, callers)
	var running sync.WaitGroup
	for i := range reports {
		reports[i] = newReport()
		running.Go(func() { j.call(ctx, l, &reports[i]) })
	}
	running.Wait()
	closeAll()
	total := newReport()
	total.InDoubt = unsure.Load()
	for _, r := range reports {
		total.add(r)
	}
	return json.NewEncoder(os.Stdout).Encode(total)
}

// newLimiter is put together as in an enforcer, but for the clock.
func newLimiter(j job, observer limiter.Observer) (*limiter.Limiter, func(), error) {
	target := backends.New(policy.Name{Namespace: "shop", Name: "redis"})
	target.Budget = patience
	c := &target.Config
	c.Mode, c.Addresses, c.Sentinel.Master = j.Mode, j.Addresses, j.Master
	c.Timeout, c.DialTimeout, c.Now = patience, patience, clock{time.Now(), j}.now
	var compiled []*policy.Policy
	for _, text := range j.Policies {
		decoded, err := policy.DecodePolicy([]byte(text))
		if err != nil {
			return nil, nil, err
		}
		p, err := policy.Compile(decoded, policy.Defaults{})
		if err != nil {
			return nil, nil, err
		}
		compiled = append(compiled, p)
	}
	stores := backends.NewStores(func(policy.Name) redisstore.Observer { return nil })
	targets := make([]*backends.Target, len(compiled))
	for i := range targets {
		targets[i] = target
	}
	opened, err := stores.Backends(targets)
	if err != nil {
		return nil, nil, err
	}
	stores.Warm()
	l := limiter.New(limiter.Options{Observer: observer})
	l.Swap(&limiter.Snapshot{Set: policy.NewSet(compiled), Backends: opened})
	return l, func() { l.Close(); stores.Close() }, nil
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

func (j job) call(ctx context.Context, l *limiter.Limiter, r *report) {
	<-time.After(rand.N(j.Pace))
	tick := time.NewTicker(j.Pace)
	defer tick.Stop()
	methods := j.Methods
	if len(methods) == 0 {
		methods = []string{http.MethodGet}
	}
	var d limiter.Decision
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		user, path := fmt.Sprint("user-", rand.N(max(j.Users, 1))), fmt.Sprint("/", rand.N(max(j.Paths, 1)))
		req := &policy.Request{
			Method: methods[rand.N(len(methods))], Path: path, Peer: netip.MustParseAddr("192.0.2.1"),
			Header: http.Header{"X-User-Id": {user}},
		}
		l.Decide(context.Background(), req, &d)
		r.note(&d, user, path)
	}
}

// note counts a decision. A counter is named after its rule and who is counted.
func (r *report) note(d *limiter.Decision, user, path string) {
	switch {
	case d.Outcome == limiter.Denied:
		r.Denied++
		return
	case d.Outcome != limiter.Allowed, len(d.Quotas) == 0:
		r.Failed++
		return
	}
	r.Allowed++
	for _, q := range d.Quotas {
		counter := q.Rule.Name
		switch {
		case strings.HasSuffix(counter, "-of-user"):
			counter += " " + user
		case strings.HasSuffix(counter, "-of-path"):
			counter += " " + path
		}
		r.admit(counter, q.Reset, 1)
		r.Least = min(r.Least, q.Remaining)
	}
}
