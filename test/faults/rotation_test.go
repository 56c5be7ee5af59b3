//go:build faults

package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	redistest "github.com/weir-dev/weir/test/redis"
)

// How much is changed under load, and how many requests follow each change.
const (
	edits     = 500
	rotations = 25 // of a certificate, in two steps each
	calls     = 10
)

// TestEditsAndRotationsUnderLoad edits policies in every way, and in between swaps
// certificates, authorities and passwords, with an overlap as people are told to.
func TestEditsAndRotationsUnderLoad(t *testing.T) {
	r := newRotation(t)
	d := deploy(t, r.text())
	tr := d.send()
	tr.goOn(20 * callers)
	connected, before := connections(r.server)[user], used()
	for i := range edits {
		r.edit(i)
		d.put(r.text())
		if i%(edits/rotations) == 0 {
			r.rotate(d, tr)
		}
		tr.goOn(calls)
	}
	d.putBroken(strings.ReplaceAll(r.text(), "tls.crt", "tls.lost"))
	tr.goOn(calls)
	last := r.manifests
	r.manifests = standing(r.addresses...)
	r.label, r.username, r.password, r.certificates, r.trusted = last.label, user, last.password, last.certificates, last.trusted
	d.put(r.text())
	d.await("connections are as many as they were", func() bool { return connections(r.server)[user] <= connected })
	before.compare(t, 1)
	tr.stop()
	tr.judge(t)
	if counted := r.steady(); counted != tr.answered.Load() {
		t.Errorf("the policy whose limits stayed has counted %d of %d requests", counted, tr.answered.Load())
	}
	t.Logf("%d edits, %d changes of certificates and of passwords each", edits, 2*rotations)
}

// rotation is a server with TLS and logins, and what an enforcer is told of it.
type rotation struct {
	manifests
	server *redistest.Server
	t      *testing.T
	number int
}

func newRotation(t *testing.T) *rotation {
	certificates := redistest.NewCertificates(t)
	server := redistest.StartTLS(t, certificates, redistest.User(user, password, "~rl:*", "+@all")...)
	r := &rotation{manifests: standing(server.Addr()), server: server, t: t}
	r.username, r.password = user, password
	r.certificates, r.trusted = certificates, certificates.CA
	return r
}

// edit changes one thing that people change, and sometimes only a label.
func (r *rotation) edit(i int) {
	switch i % 8 {
	case 0:
		r.limit++
	case 1:
		r.window += time.Second
	case 2:
		r.rules = 1 + r.rules%3
	case 3:
		r.mode = map[v1alpha1.Mode]v1alpha1.Mode{
			v1alpha1.ModeEnforce: v1alpha1.ModeShadow, v1alpha1.ModeShadow: v1alpha1.ModeDisabled, v1alpha1.ModeDisabled: v1alpha1.ModeEnforce,
		}[r.mode]
	case 4:
		r.extra = (r.extra + 1) % 4
	case 5:
		r.decision += time.Millisecond
	default:
		r.label++
	}
}

// rotate changes the authority and all that it signed, and then the password. What
// was good before stays good until the enforcer has taken the new over.
func (r *rotation) rotate(d *deployment, tr *traffic) {
	old, next := r.certificates, redistest.NewCertificates(r.t)
	r.server.Present(old, old, next)
	r.certificates, r.trusted = next, append(append([]byte(nil), old.CA...), next.CA...)
	d.put(r.text())
	tr.goOn(calls)
	r.server.Present(next, next)
	r.trusted = next.CA
	d.put(r.text())
	tr.goOn(calls)
	for range 2 {
		was := r.password
		r.number++
		r.password = fmt.Sprint("password-", r.number)
		r.server.Do("ACL", "SETUSER", user, ">"+r.password)
		d.put(r.text())
		tr.goOn(calls)
		r.server.Do("ACL", "SETUSER", user, "<"+was)
		tr.goOn(calls)
	}
}

// steady is what the policy that never changes its limit has counted.
func (r *rotation) steady() (total int64) {
	r.t.Helper()
	ctx, client := context.Background(), r.server.Client()
	for _, key := range client.Keys(ctx, "*}:shop/steady/*").Val() {
		n, err := client.Get(ctx, key).Int64()
		if err != nil {
			r.t.Error(err)
		}
		if !strings.HasSuffix(key, ":denied") {
			total += n
		}
	}
	return total
}

// TestRotationOnASlowNetwork changes the password while making a connection takes
// longer than a decision may. Old and new password are both good meanwhile.
func TestRotationOnASlowNetwork(t *testing.T) {
	const slow, rotations = 60 * time.Millisecond, 5
	server := redistest.Start(t, redistest.User(user, password, "~rl:*", "+@all")...)
	way := redistest.NewProxy(t, server.Addr())
	m := standing(way.Addr())
	m.username, m.password, m.database, m.decision = user, password, 1, 3*slow
	d := deploy(t, m.text())
	tr := d.send()
	tr.goOn(callers)
	way.Delay(slow)
	tr.goOn(callers)
	for i := range rotations {
		old := m.password
		m.password = strings.Repeat("n", i+1)
		server.Do("ACL", "SETUSER", user, ">"+m.password)
		d.put(m.text())
		tr.goOn(5 * callers)
		server.Do("ACL", "SETUSER", user, "<"+old)
		tr.goOn(5 * callers)
	}
	tr.stop()
	tr.judge(t)
}

// TestSentinelsPasswordAndServersChange rotates what Sentinels ask for, and then
// moves to another Redis and back.
func TestSentinelsPasswordAndServersChange(t *testing.T) {
	g := redistest.StartSentinels(t, redistest.SentinelOptions{Password: "data"})
	other := redistest.Start(t)
	m := standing(g.Addresses()...)
	m.redisMode, m.username, m.password = v1alpha1.RedisSentinel, "default", "data"
	m.watcher, m.watch = "watcher", "watch-0"
	allow := func(change string) {
		for _, s := range g.Sentinels() {
			s.Do("ACL", "SETUSER", m.watcher, "on", change, "+@all", "&*")
		}
	}
	allow(">" + m.watch)
	d := deploy(t, m.text())
	tr := d.send()
	tr.goOn(callers)
	for i := range 5 {
		old := m.watch
		m.watch = fmt.Sprint("watch-", i+1)
		allow(">" + m.watch)
		d.put(m.text())
		tr.goOn(calls)
		allow("<" + old)
		tr.goOn(calls)
		away := standing(other.Addr())
		d.put(away.text())
		tr.goOn(calls)
		d.put(m.text())
		tr.goOn(calls)
	}
	tr.stop()
	tr.judge(t)
}

// connections tells how many connections there are of each user, but the bed's.
func connections(s *redistest.Server) map[string]int {
	count := map[string]int{}
	for line := range strings.Lines(s.Client().ClientList(context.Background()).Val()) {
		_, rest, _ := strings.Cut(line, " user=")
		if name, _, _ := strings.Cut(rest, " "); name != "testbed" {
			count[name]++
		}
	}
	return count
}
