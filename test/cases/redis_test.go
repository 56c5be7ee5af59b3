package cases

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	redistest "github.com/weir-dev/weir/test/redis"
)

// keys are the names of all counters, sorted, without those of what was denied.
func (s *site) keys() []string {
	s.t.Helper()
	return slices.DeleteFunc(s.everyKey(), func(key string) bool { return strings.HasSuffix(key, ":denied") })
}

// everyKey are the names of all keys, sorted.
func (s *site) everyKey() []string {
	s.t.Helper()
	keys, err := s.redis.Client().Keys(s.t.Context(), "*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

// attempts are the requests that were counted for each caller, as it is written
// between the braces of keys, over all rules.
func (s *site) attempts() map[string]int {
	s.t.Helper()
	all := map[string]int{}
	for _, key := range s.keys() {
		_, rest, _ := strings.Cut(key, "{")
		client, _, _ := strings.Cut(rest, "}")
		all[client] += s.count(key)
	}
	return all
}

// wantAttempts waits until these are all attempts: those that were denied without
// asking Redis are counted a little later.
func (s *site) wantAttempts(want map[string]int) {
	s.t.Helper()
	deadline, tick := time.After(patience/3), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !cmp.Equal(want, s.attempts()) {
		select {
		case <-deadline:
			s.t.Errorf("requests were counted wrongly: %s", cmp.Diff(want, s.attempts()))
			return
		case <-tick.C:
		}
	}
}

// clients are the callers that have counters.
func (s *site) clients() []string {
	s.t.Helper()
	return slices.Sorted(maps.Keys(s.attempts()))
}

// count is what a key holds, 0 if it is not there.
func (s *site) count(key string) int {
	s.t.Helper()
	n, _ := s.redis.Client().Get(s.t.Context(), key).Int()
	return n
}

// now is the time by a server's clock.
func now(t *testing.T, redis *redistest.Server) time.Time {
	t.Helper()
	at, err := redis.Client().Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// remaining waits until no more and no less than so much is left of a window of
// so many seconds, within bounds, and returns the window's number.
func (s *site) remaining(seconds int64, least, most time.Duration) (number int64) {
	s.t.Helper()
	window := time.Duration(seconds) * time.Second
	eventually(s.t, "a window is as far as it should be", func() bool {
		at := time.Duration(now(s.t, s.redis).UnixNano())
		number = int64(at / window)
		left := window - at%window
		return left >= least && left <= most
	})
	return number
}

// window is the number of the window that it is now.
func (s *site) window(seconds int64) int64 {
	s.t.Helper()
	return now(s.t, s.redis).Unix() / seconds
}

// metric is the value of a series of the first enforcer, -1 if there is none.
func (s *site) metric(series string) int {
	s.t.Helper()
	for line := range strings.Lines(s.enforcers[0].page(s.t, "/metrics")) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return int(n)
		}
	}
	return -1
}

// redisKeepTTL sets a value and leaves the key's expiry as it is.
var redisKeepTTL = redis.SetArgs{KeepTTL: true}
