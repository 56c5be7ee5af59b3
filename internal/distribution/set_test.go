package distribution

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/distribution/streampb"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// FuzzAssembler feeds messages in any order: nothing is in force before a commit,
// what is has a backend for every policy, and what is not adopted changes nothing.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte{0, 4, 2, 10})
	f.Add([]byte{0, 4, 2, 10, 1, 6, 8, 10, 0, 10})
	f.Add([]byte{2, 10, 0, 3, 10, 0, 2, 4, 9, 7, 10})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var a assembler
		for _, step := range steps {
			before := a.current
			m := message(step)
			s, err := a.take(m)
			switch {
			case s == nil && m.GetCommit() != nil && err == nil:
				t.Fatal("a commit makes no set and is no error")
			case s != nil && m.GetCommit() == nil:
				t.Fatal("a set is made without a commit")
			case !bytes.Equal(before.Version, a.current.Version) || len(before.Policies) != len(a.current.Policies):
				t.Fatal("what is in force changes by itself")
			}
			if s == nil {
				continue
			}
			for _, p := range s.Policies {
				if _, ok := s.Backends[p.Login]; !ok {
					t.Fatalf("policy %s has nowhere to count", p.Name)
				}
			}
			if step%2 == 0 {
				a.adopt(s)
			}
		}
	})
}

// message is one of each kind.
func message(step byte) *streampb.FromManager {
	login := loginToPB(policycache.LoginName{Backend: policy.Name{Namespace: "n", Name: string('b' + rune(step/16%2))}})
	name := nameToPB(policy.Name{Namespace: "n", Name: string('p' + rune(step/32%2))})
	item := &streampb.Item{Item: &streampb.Item_Policy{Policy: &streampb.Policy{Name: name, Generation: int64(step), Login: login}}}
	backend := &streampb.Item{Item: &streampb.Item_Backend{Backend: &streampb.Backend{Login: login}}}
	part := func(item *streampb.Item, more bool) *streampb.FromManager {
		data, _ := proto.Marshal(item)
		return &streampb.FromManager{Message: &streampb.FromManager_Part{Part: &streampb.Part{Data: data, More: more}}}
	}
	switch step % 12 {
	case 0, 1:
		return &streampb.FromManager{Message: &streampb.FromManager_Begin{Begin: &streampb.Begin{Complete: step%12 == 0}}}
	case 2:
		return part(item, false)
	case 3:
		return part(item, true)
	case 4, 5:
		return part(backend, false)
	case 6:
		return &streampb.FromManager{Message: &streampb.FromManager_RemovePolicy{RemovePolicy: name}}
	case 7:
		return &streampb.FromManager{Message: &streampb.FromManager_RemoveBackend{RemoveBackend: login}}
	case 8:
		return &streampb.FromManager{Message: &streampb.FromManager_Keep{Keep: &streampb.Keep{Name: name}}}
	case 9:
		return &streampb.FromManager{Message: &streampb.FromManager_Part{Part: &streampb.Part{Data: []byte{step, 255}}}}
	case 10:
		return &streampb.FromManager{Message: &streampb.FromManager_Commit{Commit: &streampb.Commit{Version: []byte{step}}}}
	}
	return &streampb.FromManager{}
}

func TestSetInPartsIsNeverInForce(t *testing.T) {
	var a assembler
	if _, err := a.take(message(10)); !errors.Is(err, errOrder) {
		t.Errorf("a commit without a beginning: %v", err)
	}
	for _, step := range []byte{0, 4, 2} {
		if s, err := a.take(message(step)); s != nil || err != nil {
			t.Fatalf("step %d: %v, %v", step, s, err)
		}
	}
	a.reset()
	if _, err := a.take(message(10)); !errors.Is(err, errOrder) {
		t.Errorf("a commit after the stream broke: %v", err)
	}
}
