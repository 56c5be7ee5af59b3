package standalone

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/policy"
)

// Embedded is the value of Options.Redis for a Redis in this process.
const Embedded = "embedded"

// Options say what is enforced and where it counts.
type Options struct {
	// Paths are files or folders.
	Paths []string
	// Redis overrides the backend of every policy: a URL, or Embedded. Empty
	// takes the policies' own.
	Redis string
	// ClientAddress is for policies without one.
	ClientAddress *v1alpha1.ClientAddress
	Logger        *slog.Logger
	Metrics       *metrics.Metrics
}

// Enforcement keeps a Limiter up to date with files.
type Enforcement struct {
	opts     Options
	limiter  *limiter.Limiter
	override *connection
	embedded *miniredis.Miniredis

	mu       sync.Mutex
	stores   map[string]*store // by connection.identity
	set      *policy.Set
	backends []*limiter.Backend
	content  [sha256.Size]byte
	refused  string // what was last said to be wrong
}

type store struct {
	backend *limiter.Backend
	redis   *redisstore.Store
}

// lingering is how long a replaced store stays open for decisions that still use
// it: longer than the longest budget.
const lingering = 10 * time.Second

// New starts the embedded Redis if it is wanted. Nothing is enforced before Load.
func New(opts Options, l *limiter.Limiter) (*Enforcement, error) {
	e := &Enforcement{opts: opts, limiter: l, stores: map[string]*store{}, set: policy.NewSet(nil)}
	switch opts.Redis {
	case "":
		return e, nil
	case Embedded:
		e.embedded = miniredis.NewMiniRedis()
		if err := e.embedded.StartAddr("127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("start the embedded redis: %w", err)
		}
		opts.Redis = "redis://" + e.embedded.Addr()
	}
	override, err := overriding(opts.Redis)
	if err != nil {
		return nil, err
	}
	if e.embedded != nil {
		override.name.Name = Embedded
		override.identify("")
	}
	e.override = override
	return e, nil
}

// Set is what is in force.
func (e *Enforcement) Set() *policy.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set
}

// InForce are the policies in force and their backends, by Policy.Index.
func (e *Enforcement) InForce() (*policy.Set, []*limiter.Backend) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.set, e.backends
}

// Load reads the files and puts them in force, or says what is wrong with them
// and leaves in force what is. Files that did not change are left alone.
func (e *Enforcement) Load() (changed bool, problems Problems) {
	content := e.digest()
	e.mu.Lock()
	defer e.mu.Unlock()
	if content == e.content {
		return false, nil
	}
	objects, problems := Load(e.opts.Paths, nil)
	connections, more := e.resolve(objects)
	problems = append(problems, more...)
	if len(problems.Errors()) > 0 {
		e.content = content
		return true, problems
	}
	snapshot, err := e.snapshot(objects, connections)
	if err != nil {
		return true, append(problems, Problem{File: strings.Join(e.opts.Paths, ", "), Message: err.Error()})
	}
	e.content = content
	e.limiter.Swap(snapshot)
	e.set, e.backends = snapshot.Set, snapshot.Backends
	e.closeUnused()
	return true, problems
}

// digest sums up the files, to see whether they changed.
func (e *Enforcement) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range e.opts.Paths {
		files, err := readFiles(path, nil)
		if err != nil {
			// The state "cannot be read" is one of its own.
			_, _ = io.WriteString(h, err.Error())
		}
		for _, f := range files {
			_, _ = fmt.Fprintf(h, "%q %d ", f.name, len(f.data))
			_, _ = h.Write(f.data)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func (e *Enforcement) resolve(objects *Objects) (map[policy.Name]*connection, Problems) {
	if e.override == nil {
		return objects.Resolve()
	}
	connections := map[policy.Name]*connection{}
	for name := range objects.Policies {
		connections[name] = e.override
	}
	return connections, nil
}

// snapshot compiles the policies and opens the stores that are not open yet.
func (e *Enforcement) snapshot(objects *Objects, connections map[policy.Name]*connection) (*limiter.Snapshot, error) {
	var policies []*policy.Policy
	for name, p := range objects.Policies {
		c := connections[name]
		compiled, err := policy.Compile(p, policy.Defaults{KeyPrefix: c.keyPrefix, HashKey: c.hashKey, ClientAddress: e.opts.ClientAddress})
		if err != nil {
			return nil, err
		}
		policies = append(policies, compiled)
	}
	s := &limiter.Snapshot{Set: policy.NewSet(policies)}
	for _, p := range s.Set.Policies() {
		backend, err := e.open(connections[p.Name])
		if err != nil {
			return nil, err
		}
		s.Backends = append(s.Backends, backend)
	}
	return s, nil
}

func (e *Enforcement) open(c *connection) (*limiter.Backend, error) {
	if s := e.stores[c.identity]; s != nil {
		return s.backend, nil
	}
	config := c.config
	config.Observer = e.opts.Metrics.Backend(c.name)
	redis, err := redisstore.New(config)
	if err != nil {
		return nil, fmt.Errorf("RedisBackend %s: %w", c.name, err)
	}
	s := &store{redis: redis, backend: &limiter.Backend{Name: c.name, Store: redis, Budget: c.budget}}
	e.stores[c.identity] = s
	return s.backend, nil
}

// closeUnused closes stores that no policy uses any more, once the decisions that
// do have ended.
func (e *Enforcement) closeUnused() {
	used := map[*limiter.Backend]bool{}
	for _, backend := range e.backends {
		used[backend] = true
	}
	for identity, s := range e.stores {
		if !used[s.backend] {
			delete(e.stores, identity)
			time.AfterFunc(lingering, func() { _ = s.redis.Close() })
		}
	}
}

// pollInterval is how often files are looked at. Reading them is cheap beside
// serving, and works alike for editors, mounted ConfigMaps and network folders.
const pollInterval = 250 * time.Millisecond

// Watch keeps the files in force until the context ends.
func (e *Enforcement) Watch(ctx context.Context) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	age := time.NewTicker(time.Second)
	defer age.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-age.C:
			// The embedded Redis's keys age only when told to.
			if e.embedded != nil {
				e.embedded.FastForward(time.Second)
			}
		case <-poll.C:
			e.reload()
		}
	}
}

// reload loads changed files and says what came of it, once.
func (e *Enforcement) reload() {
	changed, problems := e.Load()
	if !changed {
		return
	}
	if errs := problems.Errors(); len(errs) > 0 {
		if text := errs.Error(); text != e.refused {
			e.refused = text
			e.opts.Metrics.Reloaded(false)
			for _, problem := range errs {
				e.opts.Logger.Error("policies are broken, the last good ones stay in force", "problem", problem.String())
			}
		}
		return
	}
	e.refused = ""
	e.opts.Metrics.Reloaded(true)
	e.opts.Logger.Info("policies are in force", "policies", len(e.Set().Policies()))
}

// Close ends the stores and the embedded Redis.
func (e *Enforcement) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.stores {
		_ = s.redis.Close()
	}
	if e.embedded != nil {
		e.embedded.Close()
	}
}
