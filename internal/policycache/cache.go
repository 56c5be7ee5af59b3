package policycache

import (
	"fmt"
	"sync"

	"github.com/weir-dev/weir/internal/policy"
)

// Cache is what a cluster's policies and backends are. It is safe for concurrent
// use.
type Cache struct {
	mu          sync.Mutex
	synced      bool
	shadow      bool
	policies    map[policy.Name]*PolicyItem
	byNamespace map[string]map[policy.Name]*PolicyItem
	backends    map[policy.Name]*backendEntry
	audiences   map[string]*audienceEntry
}

// backendEntry is a backend, with the shared login and with those of namespaces.
type backendEntry struct {
	shared *BackendItem
	own    map[string]*BackendItem
}

// audienceEntry is an audience that somebody watches.
type audienceEntry struct {
	Audience
	watchers map[*watcher]struct{}
	view     *View // nil when it may be another one
}

type watcher struct{ notify func() }

// New returns a Cache that knows nothing, and says so until Synced.
func New() *Cache {
	return &Cache{
		policies:    map[policy.Name]*PolicyItem{},
		byNamespace: map[string]map[policy.Name]*PolicyItem{},
		backends:    map[policy.Name]*backendEntry{},
		audiences:   map[string]*audienceEntry{},
	}
}

// Synced tells the cache that it has been told of everything that there is.
func (c *Cache) Synced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.synced {
		return
	}
	c.synced = true
	c.wake(func(*Audience) bool { return true })
}

// SetPolicy puts a policy in place of what was known of it.
func (c *Cache) SetPolicy(p Policy) error {
	item, err := p.item(false)
	if err != nil {
		return fmt.Errorf("policy %s: %w", p.Name, err)
	}
	if item.shadow, err = p.item(true); err != nil {
		return fmt.Errorf("policy %s: %w", p.Name, err)
	}
	c.put(item)
	return nil
}

func (c *Cache) put(item *PolicyItem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.policies[item.Name]
	if before != nil && before.Digest == item.Digest {
		return
	}
	c.policies[item.Name] = item
	namespace := item.Name.Namespace
	if c.byNamespace[namespace] == nil {
		c.byNamespace[namespace] = map[policy.Name]*PolicyItem{}
	}
	c.byNamespace[namespace][item.Name] = item
	c.wake(func(a *Audience) bool { return a.sees(item) || before != nil && a.sees(before) })
}

// HoldPolicy tells that a policy can't be enforced as it is now. Enforcers keep what
// they have of it.
func (c *Cache) HoldPolicy(name policy.Name) {
	c.put(&PolicyItem{Name: name, held: true, Digest: digest("held", name)})
}

// DeletePolicy forgets a policy.
func (c *Cache) DeletePolicy(name policy.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.policies[name]
	if e == nil {
		return
	}
	delete(c.policies, name)
	delete(c.byNamespace[name.Namespace], name)
	if len(c.byNamespace[name.Namespace]) == 0 {
		delete(c.byNamespace, name.Namespace)
	}
	c.wake(func(a *Audience) bool { return a.sees(e) })
}

// SetBackend puts a backend in place of what was known of it.
func (c *Cache) SetBackend(b Backend) error {
	e := &backendEntry{own: map[string]*BackendItem{}}
	var err error
	if e.shared, err = b.item(""); err != nil {
		return fmt.Errorf("backend %s: %w", b.Name, err)
	}
	for namespace := range b.Own {
		if e.own[namespace], err = b.item(namespace); err != nil {
			return fmt.Errorf("backend %s: %w", b.Name, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.backends[b.Name]; before != nil && before.equal(e) {
		return nil
	}
	c.backends[b.Name] = e
	c.wakeUsers(b.Name)
	return nil
}

func (e *backendEntry) equal(other *backendEntry) bool {
	if e.shared.Digest != other.shared.Digest || len(e.own) != len(other.own) {
		return false
	}
	for namespace, item := range e.own {
		if same := other.own[namespace]; same == nil || same.Digest != item.Digest {
			return false
		}
	}
	return true
}

// DeleteBackend forgets a backend. Its policies are seen by nobody until there is
// another one.
func (c *Cache) DeleteBackend(name policy.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.backends[name] == nil {
		return
	}
	delete(c.backends, name)
	c.wakeUsers(name)
}

// SetShadow turns the kill switch on or off: while it is on, every view shows
// policies that never deny.
func (c *Cache) SetShadow(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shadow == on {
		return
	}
	c.shadow = on
	c.wake(func(*Audience) bool { return true })
}

// View returns what an audience sees, or false before Synced.
func (c *Cache) View(a Audience) (*View, bool) {
	a = a.normal()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced {
		return nil, false
	}
	e := c.audiences[a.key()]
	if e == nil {
		return c.view(&a), true
	}
	if e.view == nil {
		e.view = c.view(&e.Audience)
	}
	return e.view, true
}

// Watch calls notify whenever an audience's view may have become another one. It
// must not block, nor call the Cache.
func (c *Cache) Watch(a Audience, notify func()) (stop func()) {
	a = a.normal()
	key, w := a.key(), &watcher{notify}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.audiences[key]
	if e == nil {
		e = &audienceEntry{Audience: a, watchers: map[*watcher]struct{}{}}
		c.audiences[key] = e
	}
	e.watchers[w] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(e.watchers, w)
		if len(e.watchers) == 0 && c.audiences[key] == e {
			delete(c.audiences, key)
		}
	}
}

// wakeUsers wakes those who see a policy that counts in a backend.
func (c *Cache) wakeUsers(backend policy.Name) {
	var users []*PolicyItem
	for _, p := range c.policies {
		if p.Login.Backend == backend {
			users = append(users, p)
		}
	}
	c.wake(func(a *Audience) bool {
		for _, p := range users {
			if a.sees(p) {
				return true
			}
		}
		return false
	})
}

func (c *Cache) wake(concerns func(*Audience) bool) {
	for _, e := range c.audiences {
		if !concerns(&e.Audience) {
			continue
		}
		e.view = nil
		for w := range e.watchers {
			w.notify()
		}
	}
}
