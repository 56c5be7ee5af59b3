//go:build faults

package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	redistest "github.com/weir-dev/weir/test/redis"
)

// watching is how often the witness looks.
const watching = 5 * time.Millisecond

// witness asks a server that nothing happens to, all the time. When its answers
// are late the machine is: it has not enough processors for all that runs on it.
type witness struct {
	server *redistest.Server
	cancel context.CancelFunc
	ended  sync.WaitGroup
	mu     sync.Mutex
	late   [phases]time.Duration
}

func newWitness(t *testing.T) *witness { return &witness{server: redistest.Start(t)} }

// look takes notes until stop, by phase.
func (w *witness) look(at func() phase) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.ended.Go(func() {
		tick := time.NewTicker(watching)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case due := <-tick.C:
				p := at()
				_ = w.server.Client().Ping(context.Background()).Err()
				w.note(p, time.Since(due))
			}
		}
	})
}

func (w *witness) note(p phase, late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late[p] = max(w.late[p], late)
}

func (w *witness) stop() {
	w.cancel()
	w.ended.Wait()
}

// worst is how late the machine was at most in some phases.
func (w *witness) worst(in ...phase) (worst time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range in {
		worst = max(worst, w.late[p])
	}
	return worst
}
