//go:build bench

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/test/bench/measure"
)

// script is the arguments by which the check script charges one rule of so many
// requests, each with a key of its own.
func script(requests int, limit int64, window int64) []any {
	const charge, checks, cost, enforced = 0, 1, 1, 1
	if requests == 1 {
		return []any{limit, window, time.Now().Unix() / window, cost}
	}
	return []any{charge, checks, requests, limit, window, time.Now().Unix() / window, cost, enforced}
}

// header is how many integers of the script's reply come before the results.
const header = 3

// charge calls the script once for all counters and returns what is admitted on
// each, or a negative number where it is over.
func charge(ctx context.Context, client *redis.Client, limit, window int64, counters ...string) ([]int64, error) {
	keys := make([]string, 0, 2*len(counters))
	for _, counter := range counters {
		keys = append(keys, counter, counter+":denied")
	}
	reply, err := client.EvalSha(ctx, redisstore.ScriptSHA, keys, script(len(counters), limit, window)...).Int64Slice()
	if err != nil {
		return nil, err
	}
	if len(reply) != header+len(counters) {
		return nil, fmt.Errorf("the script answers %d counters with %d integers", len(counters), len(reply))
	}
	return reply[header:], nil
}

// singles are callers that each call the script once for a check: what remains
// of Weir without its limiter and its store.
func singles(client *redis.Client, users []string, limit int64, over bool) measure.Caller {
	return func(int) func() error {
		return func() error {
			user := users[rand.IntN(len(users))]
			admitted, err := charge(context.Background(), client, limit, measure.Window, measure.Key(user))
			if err == nil && admitted[0] < 0 != over {
				err = fmt.Errorf("the script says %d for %s", admitted[0], user)
			}
			return err
		}
	}
}

var benchmarkRate = regexp.MustCompile(`([0-9.]+) requests per second`)

// benchmark is a load that redis-benchmark makes.
type benchmark struct {
	connections, pipeline, checks int // checks a call
	calls                         int // before it is over
}

// run returns the checks a second. Each key gets a random user of its own, the
// marks of what was denied too, so it shall be used where nothing is denied.
func (b benchmark) run(t *testing.T, address string) measure.Round {
	t.Helper()
	args := []string{"-p", address[strings.LastIndexByte(address, ':')+1:], "-q", "-r", strconv.Itoa(manyKeys),
		"-c", strconv.Itoa(b.connections), "-P", strconv.Itoa(b.pipeline), "-n", strconv.Itoa(b.calls),
		"EVALSHA", redisstore.ScriptSHA, strconv.Itoa(2 * b.checks)}
	key := measure.Key("user___rand_int__")
	for range b.checks {
		args = append(args, key, key+":denied")
	}
	for _, argument := range script(b.checks, measure.NeverReached, measure.Window) {
		args = append(args, fmt.Sprint(argument))
	}
	out, err := exec.CommandContext(t.Context(), program(t, "redis-benchmark"), args...).CombinedOutput()
	found := benchmarkRate.FindAllSubmatch(out, -1)
	if err != nil || len(found) == 0 {
		t.Fatalf("redis-benchmark: %v\n%s", err, out)
	}
	rate, _ := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
	return measure.Round{Rate: rate * float64(b.checks)}
}
