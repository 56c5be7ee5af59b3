package standalone

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embedded is a Redis in this process, for a quick try.
type embedded struct {
	redis *miniredis.Miniredis
}

func startEmbedded() (*embedded, error) {
	redis := miniredis.NewMiniRedis()
	if err := redis.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start the embedded redis: %w", err)
	}
	return &embedded{redis}, nil
}

// age makes keys expire until ctx ends. By itself the embedded Redis would keep
// every key, or look at all of them at each call.
func (e *embedded) age(ctx context.Context) {
	const every = time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			e.redis.FastForward(now.Sub(last))
			last = now
		}
	}
}
