package backends

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/denials"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// lingering is how long a store that nothing refers to stays open: longer than any
// decision that began before and the refunds that it leaves behind.
const lingering = 15 * time.Second

// warming is how long new policies wait at most for the connections of new stores:
// shorter than the second in which an edit is to be in force.
const warming = 500 * time.Millisecond

// Stores are the open stores, one for each identity of a target. It is safe for
// concurrent use.
type Stores struct {
	observe func(policy.Name) redisstore.Observer

	mu      sync.Mutex
	open    map[[sha256.Size]byte]*opened
	cold    []*opened // that were not warmed yet
	leaving map[*opened]*time.Timer
}

// opened is a store, what is known of its denials, and the backend that stands for
// both.
type opened struct {
	id      [sha256.Size]byte
	store   *redisstore.Store
	denials *denials.Store
	backend *limiter.Backend
}

// close reports what is left, and ends the connections.
func (o *opened) close() {
	o.denials.Close()
	_ = o.store.Close()
}

// NewStores returns no stores yet. observe makes the observer of a backend's store.
func NewStores(observe func(policy.Name) redisstore.Observer) *Stores {
	return &Stores{observe: observe, open: map[[sha256.Size]byte]*opened{}, leaving: map[*opened]*time.Timer{}}
}

// Backends returns the backends of targets, nil where there is no target. Those
// that are open already are the same as before.
func (s *Stores) Backends(targets []*Target) ([]*limiter.Backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	backends := make([]*limiter.Backend, len(targets))
	for i, t := range targets {
		if t == nil {
			continue
		}
		o, err := s.openFor(t)
		if err != nil {
			return nil, err
		}
		backends[i] = o.backend
	}
	return backends, nil
}

func (s *Stores) openFor(t *Target) (*opened, error) {
	id := t.Identity()
	if o := s.open[id]; o != nil {
		return o, nil
	}
	if o := s.recall(id); o != nil {
		return o, nil
	}
	config := t.Config
	config.Observer = s.observe(t.Name)
	store, err := redisstore.New(config)
	if err != nil {
		return nil, fmt.Errorf("RedisBackend %s: %w", t.Name, err)
	}
	o := &opened{id: id, store: store, denials: denials.New(store, denials.Options{Budget: t.Budget})}
	o.backend = &limiter.Backend{Name: t.Name, Store: o.denials, Budget: t.Budget, Sharded: t.Config.Mode == v1alpha1.RedisCluster}
	s.open[id] = o
	s.cold = append(s.cold, o)
	return o, nil
}

// recall opens a store again that lingers: what was changed has been changed back.
func (s *Stores) recall(id [sha256.Size]byte) *opened {
	for o, timer := range s.leaving {
		if o.id == id && timer.Stop() {
			delete(s.leaving, o)
			s.open[id] = o
			return o
		}
	}
	return nil
}

// Warm has new stores connect, so that the first decisions need not wait for it. A
// store whose servers are slow or gone is left to connect when it is asked.
func (s *Stores) Warm() {
	s.mu.Lock()
	cold := s.cold
	s.cold = nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), warming)
	defer cancel()
	var running sync.WaitGroup
	for _, o := range cold {
		running.Go(func() { o.store.Warm(ctx) })
	}
	running.Wait()
}

// Reach returns why a target that is in use can't be reached now, until ctx's
// deadline.
func (s *Stores) Reach(ctx context.Context, t *Target) error {
	s.mu.Lock()
	o := s.open[t.Identity()]
	s.mu.Unlock()
	if o == nil {
		return nil // nothing counts there
	}
	return o.store.Reach(ctx)
}

// Keep closes all stores but those of these backends, once the decisions that
// still use them have ended.
func (s *Stores) Keep(backends []*limiter.Backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[*limiter.Backend]bool{}
	for _, b := range backends {
		used[b] = true
	}
	for id, o := range s.open {
		if used[o.backend] {
			continue
		}
		delete(s.open, id)
		s.leaving[o] = time.AfterFunc(lingering, func() { s.left(o) })
	}
}

// left closes a store that has lingered.
func (s *Stores) left(o *opened) {
	s.mu.Lock()
	_, ok := s.leaving[o]
	delete(s.leaving, o)
	s.mu.Unlock()
	if ok {
		o.close()
	}
}

// Close closes all stores at once.
func (s *Stores) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		o.close()
	}
	for o, timer := range s.leaving {
		timer.Stop()
		o.close()
	}
	clear(s.open)
	clear(s.leaving)
}
