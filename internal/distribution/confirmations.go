package distribution

import (
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// outliving is how long a confirmation outlives its stream: an enforcer that
// reconnects has been enforcing all along.
const outliving = 60 * time.Second

// Confirmation is what one enforcer has in force.
type Confirmation struct {
	Namespace, Pod, UID string
	Gateway             bool
	// Set is nil until the enforcer has confirmed one. Enforcers that see the same
	// share it.
	Set *Confirmed
	// Unreachable are the backends that the enforcer does not reach.
	Unreachable []policycache.LoginName
}

// Confirmed is a set that enforcers have in force.
type Confirmed struct {
	Policies map[policy.Name]ConfirmedPolicy
	// Withheld are the features that are lacking, by the policy that needs them.
	Withheld map[policy.Name][]string
}

// ConfirmedPolicy is the generation in force, and where it counts.
type ConfirmedPolicy struct {
	Generation int64
	Login      policycache.LoginName
}

// Reaches tells whether an enforcer reaches a backend.
func (c *Confirmation) Reaches(login policycache.LoginName) bool {
	for _, l := range c.Unreachable {
		if l == login {
			return false
		}
	}
	return true
}

// book keeps the confirmations of a server's enforcers, by Identity.key.
type book struct {
	now     func() time.Time
	changed func(namespace string, gateway bool)

	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	Confirmation
	session *session  // nil without a stream
	lost    time.Time // when the stream ended
	view    *policycache.View
}

// attend takes a session up. It returns the session that the same enforcer had,
// and what it had confirmed there.
func (b *book) attend(s *session) (before *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[s.who.key()]
	if e == nil {
		e = &entry{Confirmation: Confirmation{Namespace: s.who.Namespace, Pod: s.who.Pod, UID: s.who.UID, Gateway: s.who.Gateway}}
		b.entries[s.who.key()] = e
	}
	before, e.session = e.session, s
	return before
}

// confirm notes that a session's enforcer has a view in force.
func (b *book) confirm(s *session, v *policycache.View) {
	b.update(s, func(e *entry) bool {
		if e.view == v {
			return false
		}
		e.view, e.Set = v, b.shared(v)
		return true
	})
}

// shared is a view as a set, the one that another enforcer has confirmed if there is
// one.
func (b *book) shared(v *policycache.View) *Confirmed {
	for _, e := range b.entries {
		if e.view == v && e.Set != nil {
			return e.Set
		}
	}
	set := &Confirmed{Policies: map[policy.Name]ConfirmedPolicy{}, Withheld: map[policy.Name][]string{}}
	for _, p := range v.Policies {
		set.Policies[p.Name] = ConfirmedPolicy{p.Generation, p.Login}
	}
	for _, w := range v.Withheld {
		set.Withheld[w.Name] = w.Lacking
	}
	return set
}

// reach notes what a session's enforcer does not reach.
func (b *book) reach(s *session, unreachable []policycache.LoginName) {
	b.update(s, func(e *entry) bool { e.Unreachable = unreachable; return true })
}

// leave notes that a session has ended.
func (b *book) leave(s *session) {
	b.update(s, func(e *entry) bool { e.session, e.lost = nil, b.now(); return false })
}

// forget drops an enforcer whose pod is gone.
func (b *book) forget(key string) (s *session) {
	b.mu.Lock()
	e := b.entries[key]
	delete(b.entries, key)
	b.mu.Unlock()
	if e == nil {
		return nil
	}
	b.changed(e.Namespace, e.Gateway)
	return e.session
}

func (b *book) update(s *session, change func(*entry) bool) {
	b.mu.Lock()
	e := b.entries[s.who.key()]
	told := e != nil && e.session == s && change(e)
	b.mu.Unlock()
	if told {
		b.changed(s.who.Namespace, s.who.Gateway)
	}
}

// all returns the confirmations that count now, and drops those that have outlived
// their stream for long enough.
func (b *book) all() []Confirmation {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Confirmation, 0, len(b.entries))
	for key, e := range b.entries {
		if e.session == nil && b.now().Sub(e.lost) > outliving {
			delete(b.entries, key)
			continue
		}
		list = append(list, e.Confirmation)
	}
	return list
}

// sessions lists the sessions of some enforcers.
func (b *book) sessions(of func(*entry) bool) (list []*session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.session != nil && of(e) {
			list = append(list, e.session)
		}
	}
	return list
}

// count is how many enforcers are connected.
func (b *book) count() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.session != nil {
			n++
		}
	}
	return n
}
