package redis

import (
	"context"
	"testing"
	"time"
)

// patience is how long servers may take to come to terms. It is long, for
// machines that run many tests at once.
const patience = 60 * time.Second

// await returns when problem returns nil; until then that is what is wrong.
func await(t testing.TB, what string, problem func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := problem(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, last)
		case <-tick.C:
		}
	}
}
