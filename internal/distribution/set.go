package distribution

import (
	"errors"
	"fmt"
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/distribution/streampb"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// maxItem bounds what an item may grow to: far more than an API server stores.
const maxItem = 16 << 20

// Policy is a policy as an enforcer is told of it.
type Policy struct {
	Name       policy.Name
	Generation int64
	// Spec is a RateLimitPolicy's, in JSON.
	Spec []byte
	// Login is where it counts.
	Login policycache.LoginName
}

// Backend is a backend as an enforcer is told of it.
type Backend struct {
	Login policycache.LoginName
	// Spec is a RedisBackend's, in JSON.
	Spec    []byte
	Secrets backends.Secrets
}

// Set is all that an enforcer shall enforce.
type Set struct {
	Version  []byte
	Policies map[policy.Name]Policy
	Backends map[policycache.LoginName]Backend
}

// errOrder is the error of messages that make no set.
var errOrder = errors.New("the manager's messages are out of order")

// assembler makes sets of messages. It changes what is in force only at a commit,
// and then as a whole.
type assembler struct {
	current Set
	next    *Set
	kept    map[policy.Name]bool
	// complete sets begin with nothing.
	complete bool
	part     []byte
}

// take takes up a message. It returns a set where one is complete, which is in
// force once adopt is called with it.
func (a *assembler) take(m *streampb.FromManager) (*Set, error) {
	if begin := m.GetBegin(); begin != nil {
		a.begin(begin.GetComplete())
		return nil, nil
	}
	if a.next == nil {
		return nil, errOrder
	}
	switch m := m.GetMessage().(type) {
	case *streampb.FromManager_Part:
		return nil, a.takePart(m.Part)
	case *streampb.FromManager_RemovePolicy:
		delete(a.next.Policies, nameFromPB(m.RemovePolicy))
	case *streampb.FromManager_RemoveBackend:
		delete(a.next.Backends, loginFromPB(m.RemoveBackend))
	case *streampb.FromManager_Keep:
		a.kept[nameFromPB(m.Keep.GetName())] = true
	case *streampb.FromManager_Commit:
		return a.commit(m.Commit.GetVersion())
	default:
		return nil, errOrder
	}
	return nil, nil
}

func (a *assembler) begin(complete bool) {
	a.part, a.complete, a.kept = nil, complete, map[policy.Name]bool{}
	a.next = &Set{Policies: map[policy.Name]Policy{}, Backends: map[policycache.LoginName]Backend{}}
	if !complete {
		maps.Copy(a.next.Policies, a.current.Policies)
		maps.Copy(a.next.Backends, a.current.Backends)
	}
}

func (a *assembler) takePart(p *streampb.Part) error {
	a.part = append(a.part, p.GetData()...)
	if len(a.part) > maxItem {
		return fmt.Errorf("an item of the manager's is over %d bytes", maxItem)
	}
	if p.GetMore() {
		return nil
	}
	var item streampb.Item
	err := proto.Unmarshal(a.part, &item)
	a.part = nil
	if err != nil {
		return errors.New("an item of the manager's can't be read")
	}
	switch {
	case item.GetPolicy() != nil:
		p := item.GetPolicy()
		name := nameFromPB(p.GetName())
		a.next.Policies[name] = Policy{name, p.GetGeneration(), p.GetSpec(), loginFromPB(p.GetLogin())}
	case item.GetBackend() != nil:
		b := item.GetBackend()
		login := loginFromPB(b.GetLogin())
		a.next.Backends[login] = Backend{login, b.GetSpec(), secretsFromPB(b)}
	default:
		return errOrder
	}
	return nil
}

// commit closes a set. What is kept stays as it is in force now, with its backend.
func (a *assembler) commit(version []byte) (*Set, error) {
	next := a.next
	a.next = nil
	if a.part != nil {
		return nil, errOrder
	}
	for name := range a.kept {
		p, had := a.current.Policies[name]
		if !had {
			delete(next.Policies, name)
			continue
		}
		next.Policies[name] = p
		if _, ok := next.Backends[p.Login]; !ok {
			next.Backends[p.Login] = a.current.Backends[p.Login]
		}
	}
	for name, p := range next.Policies {
		if _, ok := next.Backends[p.Login]; !ok {
			return nil, fmt.Errorf("the manager names no backend for policy %s", name)
		}
	}
	next.Version = version
	return next, nil
}

// adopt makes a set the one that the next changes build on.
func (a *assembler) adopt(s *Set) { a.current = *s }

// reset forgets what was on its way when a stream ended.
func (a *assembler) reset() { a.next, a.part = nil, nil }
