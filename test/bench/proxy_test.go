//go:build bench

package bench

import (
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weir-dev/weir/test/bench/measure"
)

const (
	proxyRounds = 5
	wrkSeconds  = 3
	wrkCallers  = 64
	// farAway is a limit that nobody reaches, and that nginx can still count to.
	farAway = 1_000_000
)

// TestProxyNextToPeers sends the same load to the bare application, and through
// Weir, nginx with limit_req and HAProxy with a stick table, in turns. Limits are
// set so high that nobody is denied: what is measured is the cost of counting.
func TestProxyNextToPeers(t *testing.T) {
	dir := t.TempDir()
	app := startApplication(t, dir)
	all := []*contender{app, startWeir(t, dir, app.address, farAway*wrkSeconds*proxyRounds),
		startNginx(t, dir, app.address, farAway), startHAProxy(t, dir, app.address, farAway*60)}
	wrk := program(t, "wrk")
	contenders := make([]*measure.Contender, len(all))
	for i, c := range all {
		contenders[i] = &measure.Contender{Name: c.name, Run: func() measure.Round { return c.load(t, wrk) }}
	}
	measure.Alternate(proxyRounds, contenders...)
	bare := contenders[0].Median()
	table := measure.NewTable(fmt.Sprintf("requests from %d connections", wrkCallers), "through", "a second", "ratio", "p50", "p99", "CPU a request", "and Redis")
	for i, c := range contenders {
		r := c.Median()
		table.Row(c.Name, r.Rate, r.Rate/bare.Rate, r.P50, r.P99, r.Server, all[i].costOfRedis())
	}
	table.Print(t)
}

// TestPeersLimit proves that what TestProxyNextToPeers compares does limit: with
// a low limit in the same configuration, each refuses before long.
func TestPeersLimit(t *testing.T) {
	dir := t.TempDir()
	app := startApplication(t, dir)
	for _, c := range []*contender{startWeir(t, dir, app.address, 1), startNginx(t, dir, app.address, 1), startHAProxy(t, dir, app.address, 1)} {
		var statuses []int
		for range 5 {
			answer, err := http.Get("http://" + c.address + "/")
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			_ = answer.Body.Close()
			statuses = append(statuses, answer.StatusCode)
		}
		first, last := statuses[0], statuses[len(statuses)-1]
		if first != http.StatusOK || last != http.StatusTooManyRequests {
			t.Errorf("%s answers %d, want 200 first and 429 last", c.name, statuses)
		}
	}
}

var (
	wrkRate    = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkCount   = regexp.MustCompile(`(\d+) requests in`)
	wrkLatency = regexp.MustCompile(`\s(50|99)%\s+([0-9.]+[mu]?s)`)
	wrkFailed  = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)|Socket errors: .*`)
)

// load sends one round of load.
func (c *contender) load(t *testing.T, wrk string) measure.Round {
	t.Helper()
	return measure.Serving(c.pid, func() measure.Round {
		out, err := exec.CommandContext(t.Context(), wrk, "-t1", "-c"+strconv.Itoa(wrkCallers), "--latency",
			"-d"+strconv.Itoa(wrkSeconds)+"s", "http://"+c.address+"/").CombinedOutput()
		rate, count, latency := wrkRate.FindSubmatch(out), wrkCount.FindSubmatch(out), wrkLatency.FindAllSubmatch(out, 2)
		if err != nil || rate == nil || count == nil || len(latency) != 2 {
			t.Fatalf("wrk: %v\n%s", err, out)
		}
		if failed := wrkFailed.Find(out); failed != nil {
			t.Errorf("through %s: %s", c.name, failed)
		}
		var r measure.Round
		served, _ := strconv.ParseFloat(string(count[1]), 64)
		c.served += served
		r.Rate, _ = strconv.ParseFloat(string(rate[1]), 64)
		r.P50, _ = time.ParseDuration(string(latency[0][2]))
		r.P99, _ = time.ParseDuration(string(latency[1][2]))
		return r
	})
}

// costOfRedis is the processor time that the contender's Redis took for a request.
func (c *contender) costOfRedis() time.Duration {
	if c.redis == 0 {
		return 0
	}
	return time.Duration(float64(measure.CPU(c.redis)) / c.served)
}
