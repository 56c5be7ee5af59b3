package distribution

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestEnforcersAreToldOfTheManagersAuthorities(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[[]byte]
	m := startManagerWith(t, func(o *ServerOptions) {
		o.Authorities = func() []byte {
			if list := now.Load(); list != nil {
				return *list
			}
			return nil
		}
	})
	m.ready()
	told := make(chan string, 10)
	e := m.connectWith("a", func(o *ClientOptions, _ *enforcer) { o.Trust = func(list []byte) { told <- string(list) } })
	e.next(t)
	if len(told) > 0 {
		t.Errorf("told of %q, which nobody knows", <-told)
	}
	for _, list := range []string{"first", "second"} {
		now.Store(new([]byte(list)))
		m.AuthoritiesChanged()
		m.AuthoritiesChanged()
		select {
		case got := <-told:
			if got != list {
				t.Errorf("told of %q, want %q", got, list)
			}
		case <-time.After(time.Minute):
			t.Fatalf("never told of %q", list)
		}
	}
	// Who connects later hears of the last ones, and gets its set as well.
	later := m.connectWith("b", func(o *ClientOptions, _ *enforcer) { o.Trust = func(list []byte) { told <- string(list) } })
	later.next(t)
	if got := <-told; got != "second" {
		t.Errorf("told of %q", got)
	}
	if len(told) > 0 {
		t.Errorf("told again, of %q", <-told)
	}
}
