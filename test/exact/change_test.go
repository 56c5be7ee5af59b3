//go:build exact

package exact

import (
	"context"
	"fmt"
	"testing"
	"time"

	redistest "github.com/weir-dev/weir/test/redis"
)

// witnessed is a limit, and beside it a counter that tells what Redis has lost.
const witnessed = `{"metadata": {"namespace": "shop", "name": "keys"}, "spec": {"selector": {}, "rules": [
	{"name": "everyone", "limit": 500, "window": "5s"},
	{"name": "total", "limit": 1000000, "window": "366d"}]}}`

// TestFailoverAdmitsAgainWhatRedisLost changes primaries under load.
func TestFailoverAdmitsAgainWhatRedisLost(t *testing.T) {
	for _, test := range []struct {
		reason string
		// lossless tells that the new primary has all that the old one answered.
		lossless bool
		start    func(*testing.T) (s site, strike func())
	}{
		{"Sentinels change a primary that is well", false, func(t *testing.T) (site, func()) {
			s, g := sentinels(t)
			return s, func() { g.Failover() }
		}},
		{"Sentinels replace a dead primary", false, func(t *testing.T) (site, func()) {
			s, g := sentinels(t)
			return s, func() { g.KillPrimary() }
		}},
		{"a replica takes a Cluster's slots over", true, func(t *testing.T) (site, func()) {
			s, c := cluster(t, 1)
			return s, func() { c.FailOver(c.MasterOf("{shop/keys}")) }
		}},
		{"a Cluster's master dies", false, func(t *testing.T) (site, func()) {
			s, c := cluster(t, 1)
			return s, func() { c.KillMaster(c.MasterOf("{shop/keys}")) }
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s, strike := test.start(t)
			s.Policies, s.Lasting, s.Pace = []string{witnessed}, time.Hour, pace
			c := newCrew(t)
			var hired []*worker
			for range workers {
				hired = append(hired, c.hire(s.job))
			}
			<-time.After(2.2 * window * time.Second)
			strike()
			well := time.Now().Unix() + window // a window that began in trouble is not judged
			<-time.After(5 * window * time.Second)
			for _, w := range hired {
				w.stop()
			}
			excess := judgement{rule: "everyone", window: window, limit: limit, exactly: true, after: well, full: 2}.judge(t, c.total)
			admitted := c.total.admitted("total")
			counted, _ := s.counted(t, "shop/keys/total")
			if lost := admitted - counted + c.total.InDoubt; excess > lost {
				t.Errorf("%d are admitted beyond the limit, and Redis lost %d", excess, lost)
			}
			if test.lossless && (excess > 0 || admitted > counted) {
				t.Errorf("%d are admitted beyond the limit, %d in all, %d counted, though nothing need be lost", excess, admitted, counted)
			}
			t.Logf("%d admitted, %d counted after the failover, %d failed, %d of them in doubt", admitted, counted, c.total.Failed, c.total.InDoubt)
		})
	}
}

// TestEnforcersComeAndGo changes how many enforcers there are.
func TestEnforcersComeAndGo(t *testing.T) {
	s := standalone(t)
	s.Policies, s.Lasting, s.Pace = []string{everyone}, time.Hour, callers*2*time.Millisecond
	c := newCrew(t)
	var hired []*worker
	for _, n := range []int{1, 5, 2} {
		for len(hired) < n {
			hired = append(hired, c.hire(s.job))
		}
		for len(hired) > n {
			hired[0].stop()
			hired = hired[1:]
		}
		<-time.After(3 * window * time.Second)
	}
	for _, w := range hired {
		w.stop()
	}
	judgement{rule: "everyone", window: window, limit: limit, exactly: true, full: 7}.never(t, c.total)
}

// TestNoCounterOutlivesItsWindow looks at all keys all the time while enforcers
// are killed in the middle of what they do.
func TestNoCounterOutlivesItsWindow(t *testing.T) {
	const short, kills = 2, 10 // seconds
	s := standalone(t)
	s.Policies, s.Lasting, s.Pace, s.Users, s.Paths = []string{`{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"selector": {}, "rules": [
		{"name": "any-of-user", "limit": 20, "window": "2s", "key": [{"type": "Header", "name": "X-User-Id"}]},
		{"name": "any-of-path", "limit": 50, "window": "2s", "key": [{"type": "Path"}]}]}}`}, time.Hour, pace/2, 50, 20
	c := newCrew(t)
	var hired []*worker
	for range workers {
		hired = append(hired, c.hire(s.job))
	}
	server := s.masters()[0]
	ctx, cancel := context.WithCancel(t.Context())
	looked := make(chan int)
	go func() { looked <- scan(ctx, t, server, short*time.Second) }()
	for range kills {
		<-time.After(1300 * time.Millisecond)
		hired[0].kill()
		hired = append(hired[1:], c.hire(s.job))
	}
	cancel()
	n := <-looked
	if n < 1000 {
		t.Errorf("only %d keys were looked at", n)
	}
	for _, w := range hired {
		w.stop()
	}
	judgement{rule: "any-of-user", window: short, limit: 20}.never(t, c.total)
	judgement{rule: "any-of-path", window: short, limit: 50}.never(t, c.total)
	t.Logf("%d looks at keys, %d requests of enforcers that lived", n, c.total.Allowed+c.total.Denied)
}

// lives tells of each key how long it has to live, in ms, in one step.
const lives = `local result = {}
local step = redis.call('SCAN', ARGV[1], 'COUNT', 100)
for _, key in ipairs(step[2]) do
	result[#result + 1] = key
	result[#result + 1] = tostring(redis.call('PTTL', key))
end
return {step[1], result}`

// scan looks at all keys until ctx ends, and returns how many it has seen.
func scan(ctx context.Context, t *testing.T, server *redistest.Server, longest time.Duration) (seen int) {
	cursor := "0"
	for ctx.Err() == nil {
		reply, err := server.Client().Eval(context.WithoutCancel(ctx), lives, nil, cursor).Slice()
		if err != nil {
			t.Error(err)
			return seen
		}
		cursor = fmt.Sprint(reply[0])
		pairs, _ := reply[1].([]any)
		for i := 0; i+1 < len(pairs); i += 2 {
			seen++
			left, err := time.ParseDuration(fmt.Sprint(pairs[i+1], "ms"))
			if err != nil || left < 0 || left > longest {
				t.Errorf("%v has %v ms to live, of %v: %v", pairs[i], pairs[i+1], longest, err)
				return seen
			}
		}
	}
	return seen
}
