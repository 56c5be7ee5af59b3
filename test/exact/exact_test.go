//go:build exact

package exact

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// The rules that tests send more to than they admit.
const (
	limit  = 500
	window = 5 // seconds

	// everyone has one counter for all.
	everyone = `{"metadata": {"namespace": "shop", "name": "one"}, "spec": {"selector": {}, "rules": [
		{"name": "everyone", "match": {"methods": ["GET"]}, "limit": 500, "window": "5s"}]}}`
	// twoWindows counts each user in two windows; the long one binds, and the last
	// rule tells what was charged in all.
	twoWindows = `{"metadata": {"namespace": "shop", "name": "two"}, "spec": {"selector": {}, "rules": [
		{"name": "short-of-user", "match": {"methods": ["POST"]}, "limit": 500, "window": "5s", "key": [{"type": "Header", "name": "X-User-Id"}]},
		{"name": "long-of-user", "match": {"methods": ["POST"]}, "limit": 1200, "window": "15s", "key": [{"type": "Header", "name": "X-User-Id"}]},
		{"name": "total-of-user", "match": {"methods": ["POST"]}, "limit": 1000000, "window": "366d", "key": [{"type": "Header", "name": "X-User-Id"}]}]}}`
	// manyKeys has a key of its own for each rule, which is another place of a
	// Cluster; the path binds, and the last rule tells what was charged in all.
	manyKeys = `{"metadata": {"namespace": "shop", "name": "keys"}, "spec": {"selector": {}, "rules": [
		{"name": "any-of-user", "match": {"methods": ["PUT"]}, "limit": 500, "window": "5s", "key": [{"type": "Header", "name": "X-User-Id"}]},
		{"name": "any-of-path", "match": {"methods": ["PUT"]}, "limit": 300, "window": "5s", "key": [{"type": "Path"}]},
		{"name": "total", "match": {"methods": ["PUT"]}, "limit": 1000000, "window": "366d"}]}}`
	users, paths = 2, 2
)

// pace is how often a caller sends: 128 callers send some 2,000 requests a second,
// and leave the machine time for the rest.
const pace = 60 * time.Millisecond

// windows is how many full windows the longest tests have.
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
			return job{Skew: time.Duration(worker-4) * 7500 * time.Millisecond, Step: time.Duration(worker-2) * 5 * time.Second}
		}},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			s := standalone(t)
			r := run(t, workers, func(worker int) job {
				j := scenario.jobs(worker)
				j.Mode, j.Addresses, j.Policies = s.Mode, s.Addresses, []string{everyone}
				j.Lasting, j.Pace = time.Duration(windows()+1)*window*time.Second, pace
				return j
			})
			judgement{rule: "everyone", window: window, limit: limit, exactly: true, full: windows() - 1}.never(t, r)
		})
	}
}

func TestEveryTopologyIsExact(t *testing.T) {
	for _, test := range []struct {
		topology string
		start    func(*testing.T) site
	}{
		{"a server", standalone},
		{"Sentinels", func(t *testing.T) site { s, _ := sentinels(t); return s }},
		{"a Cluster", func(t *testing.T) site { s, _ := cluster(t, 0); return s }},
	} {
		t.Run(test.topology, func(t *testing.T) {
			s := test.start(t)
			r := run(t, workers, func(int) job {
				j := s.job
				j.Policies, j.Methods = []string{everyone, twoWindows, manyKeys}, []string{"GET", "POST", "PUT"}
				j.Lasting, j.Pace, j.Users, j.Paths = 55*time.Second, pace, users, paths
				return j
			})
			judgement{rule: "everyone", window: window, limit: limit, exactly: true, full: 9}.never(t, r)
			judgement{rule: "short-of-user", window: window, limit: limit, full: 9}.never(t, r)
			judgement{rule: "long-of-user", window: 15, limit: 1200, exactly: true, full: 2}.never(t, r)
			judgement{rule: "any-of-user", window: window, limit: limit, full: 9}.never(t, r)
			judgement{rule: "any-of-path", window: window, limit: 300, exactly: true, full: 9}.never(t, r)
			s.judgeTotal(t, r, "two", "total-of-user")
			s.judgeTotal(t, r, "keys", "total")
		})
	}
}

// judgeTotal wants the counter that never denies to hold what was admitted: requests
// that the other rules deny are charged to none.
func (s site) judgeTotal(t *testing.T, r report, policy, rule string) {
	t.Helper()
	admitted := r.admitted(rule)
	counted, denied := s.counted(t, "shop/"+policy+"/"+rule)
	if admitted == 0 || counted != admitted || denied != 0 || r.Failed > 0 {
		t.Errorf("%s: %d admitted, %d counted, %d of them denied, %d failed", rule, admitted, counted, denied, r.Failed)
	}
	t.Logf("%s: %d admitted, %d counted", rule, admitted, counted)
}

// TestRequestsBelowTheLimitPass sends a sixth of what a second admits.
func TestRequestsBelowTheLimitPass(t *testing.T) {
	const most = 3000
	s := standalone(t)
	r := run(t, 4, func(int) job {
		j := s.job
		j.Policies = []string{`{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"selector": {}, "rules": [
			{"name": "all", "limit": 3000, "window": "1s"}]}}`}
		j.Lasting, j.Pace = 30*time.Second, 4*callers*2*time.Millisecond
		return j
	})
	if r.Denied > 0 || r.Failed > 0 || r.Least < most*4/5 {
		t.Errorf("%d denied, %d failed, at least %d remaining of %d", r.Denied, r.Failed, r.Least, most)
	}
	t.Logf("%d requests, at least %d remaining of %d", r.Allowed, r.Least, most)
}
