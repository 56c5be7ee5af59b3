//go:build bench

package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/test/bench/measure"
	redistest "github.com/weir-dev/weir/test/redis"
)

const (
	rounds   = 24 // short ones, since what disturbs a machine lasts longer
	length   = 300 * time.Millisecond
	manyKeys = 10_000
	// window is the same for all, and so long that it does not turn.
	window = measure.Window * time.Second
)

// leastGain is how many times as many decisions Weir must make a second as the
// fastest of the others.
var leastGain = []struct {
	callers int
	gain    float64
}{{1, 1}, {64, 2.5}, {256, 4}}

var errRefused = errors.New("refused although the limit is far away")

// check asks a limiter for one request of a user.
type check func(ctx context.Context, user string) error

// peers are the others.
var peers = []struct {
	name string
	set  func(*testing.T, *redis.Client) check
}{{"redis_rate", redisRate}, {"ulule/limiter", ululeLimiter}, {"throttled", throttledLimiter}}

// TestDecisionsNextToPeers lets each limiter decide for users at random. Each is
// set up as its documentation shows, with a client of its own.
func TestDecisionsNextToPeers(t *testing.T) {
	server := redistest.Start(t)
	users := measure.Users(manyKeys)
	weir := measure.Limiter(t, measure.Store(t, server.Addr()), measure.NeverReached)
	names := []string{"Weir"}
	callers := map[string]measure.Caller{"Weir": measure.Decisions(weir, users, limiter.Allowed)}
	for _, peer := range peers {
		names = append(names, peer.name)
		callers[peer.name] = asking(peer.set(t, client(t, server)), users)
	}

	var all []*measure.Contender
	byTitle := map[string]*measure.Contender{}
	for _, bound := range leastGain {
		var group []*measure.Contender
		for _, name := range names {
			c := &measure.Contender{Name: title(bound.callers, name), Run: func() measure.Round {
				return measure.Load(t, bound.callers, length, callers[name])
			}}
			group, byTitle[c.Name] = append(group, c), c
		}
		measure.Alternate(rounds, group...)
		all = append(all, group...)
	}
	table := measure.NewTable("decisions, all allowed", "callers, through", "a second", "p50", "p99", "CPU here")
	for _, c := range all {
		r := c.Median()
		table.Row(c.Name, r.Rate, r.P50, r.P99, r.Own)
	}
	table.Print(t)
	for _, bound := range leastGain {
		weir, fastest := byTitle[title(bound.callers, names[0])], byTitle[title(bound.callers, names[1])]
		for _, name := range names[2:] {
			if c := byTitle[title(bound.callers, name)]; c.Median().Rate > fastest.Median().Rate {
				fastest = c
			}
		}
		gain := weir.Over(fastest)
		t.Logf("%d callers: %v times as many decisions as the fastest of the others", bound.callers, gain)
		// Slower is what is slower beyond doubt; a gain counts as it was seen.
		got := gain.Middle
		if bound.gain == 1 {
			got = gain.High
		}
		measure.AtLeast(t, fmt.Sprintf("%d callers, over the fastest of the others", bound.callers), got, bound.gain)
	}
}

func title(callers int, name string) string { return fmt.Sprintf("%3d  %s", callers, name) }

// asking are callers that ask about users at random.
func asking(ask check, users []string) measure.Caller {
	return func(int) func() error {
		return func() error { return ask(context.Background(), users[rand.IntN(len(users))]) }
	}
}

func client(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func redisRate(_ *testing.T, client *redis.Client) check {
	l := redisrate.NewLimiter(client)
	limit := redisrate.Limit{Rate: measure.NeverReached, Burst: measure.NeverReached, Period: window}
	return func(ctx context.Context, user string) error {
		result, err := l.Allow(ctx, user, limit)
		if err == nil && result.Allowed == 0 {
			err = errRefused
		}
		return err
	}
}

func ululeLimiter(t *testing.T, client *redis.Client) check {
	store, err := ululeredis.NewStore(client)
	if err != nil {
		t.Fatal(err)
	}
	l := ulule.New(store, ulule.Rate{Period: window, Limit: measure.NeverReached})
	return func(ctx context.Context, user string) error {
		result, err := l.Get(ctx, user)
		if err == nil && result.Reached {
			err = errRefused
		}
		return err
	}
}

func throttledLimiter(t *testing.T, client *redis.Client) check {
	store, err := throttledredis.NewCtx(client, "throttled:")
	if err != nil {
		t.Fatal(err)
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDay(measure.NeverReached), MaxBurst: measure.NeverReached})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, user string) error {
		limited, _, err := l.RateLimitCtx(ctx, user, 1)
		if err == nil && limited {
			err = errRefused
		}
		return err
	}
}
