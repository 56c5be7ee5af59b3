//go:build faults

package faults

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// So many clients send a request each at this pace, in turns and no matter how
// long decisions take: 1,000 requests a second.
const (
	clients = 64
	pace    = clients * time.Millisecond
)

// phase is how far a trial has come.
type phase int32

const (
	before phase = iota
	struck
	mended
	healthy
	phases
)

// load is requests that are sent all the time.
type load struct {
	enforcer *enforcer
	witness  *witness
	phase    atomic.Int32
	cancel   context.CancelFunc
	running  sync.WaitGroup
	clients  [clients]client
}

// client sends one request after the other, and takes notes.
type client struct {
	address netip.Addr
	// counted were decided, failed were not, by phase.
	counted, failed [phases]int64
	// took is how long decisions took from the fault's begin until all is well.
	took []time.Duration
	// remaining is what the last decision said is left, and repeated how many said
	// no less than one before.
	remaining, repeated int64
	// wrong is the first decision that is neither right nor the failure mode.
	wrong string
}

func start(e *enforcer, w *witness) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{enforcer: e, witness: w, cancel: cancel}
	w.look(l.at)
	for i, address := range addresses() {
		c := &l.clients[i]
		c.address, c.remaining = address, loadLimit
		l.running.Go(func() { l.send(ctx, c, time.Duration(i)*pace/clients) })
	}
	return l
}

// addresses are the clients'.
func addresses() (list [clients]netip.Addr) {
	next := netip.MustParseAddr("192.0.2.1")
	for i := range list {
		list[i], next = next, next.Next()
	}
	return list
}

func (l *load) enter(p phase) { l.phase.Store(int32(p)) }

func (l *load) at() phase { return phase(l.phase.Load()) }

func (*load) goOn(d time.Duration) { <-time.After(d) }

func (l *load) stop() {
	l.cancel()
	l.running.Wait()
	l.witness.stop()
}

func (l *load) send(ctx context.Context, c *client, delay time.Duration) {
	<-time.After(delay)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	request := &policy.Request{Method: "GET", Path: "/", Peer: c.address}
	var d limiter.Decision
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		at, began := l.at(), time.Now()
		l.enforcer.Decide(context.Background(), request, &d)
		if at == struck || at == mended {
			c.took = append(c.took, time.Since(began))
		}
		c.note(at, l.enforcer.mode, &d)
	}
}

// note tells right decisions from failures and from what must not be.
func (c *client) note(at phase, mode v1alpha1.FailureMode, d *limiter.Decision) {
	isAllowed := d.Outcome == limiter.Allowed && d.Cause == nil && d.RetryAfter == 0
	switch {
	case isAllowed && len(d.Quotas) == 1 && d.Quotas[0].Remaining >= 0 && d.Quotas[0].Remaining < loadLimit && !d.Quotas[0].Over:
		c.counted[at]++
		if d.Quotas[0].Remaining >= c.remaining {
			c.repeated++
		}
		c.remaining = d.Quotas[0].Remaining
	case mode == v1alpha1.FailureAllow && isAllowed && len(d.Quotas) == 0,
		mode == v1alpha1.FailureDeny && d.Outcome == limiter.Unavailable && len(d.Quotas) == 0 && d.RetryAfter > 0:
		c.failed[at]++
	case c.wrong == "":
		c.wrong = fmt.Sprintf("outcome %d, quotas %+v, retry after %d", d.Outcome, d.Quotas, d.RetryAfter)
	}
}

// sum adds up what clients counted and failed in phases.
func (l *load) sum(in ...phase) (counted, failed int64) {
	for i := range l.clients {
		for _, p := range in {
			counted += l.clients[i].counted[p]
			failed += l.clients[i].failed[p]
		}
	}
	return counted, failed
}

// took are the durations of all decisions until all is well, in ascending order.
func (l *load) took() (all []time.Duration) {
	for i := range l.clients {
		all = append(all, l.clients[i].took...)
	}
	slices.Sort(all)
	return all
}

func (l *load) summary() string {
	counted, failed := l.sum(struck)
	text := fmt.Sprintf("under the fault %d decided, %d failed", counted, failed)
	if took := l.took(); len(took) > 0 {
		text += fmt.Sprintf(", p50 %v, p99 %v, max %v", took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	}
	return text + fmt.Sprintf("; the machine is up to %v late", l.witness.worst(struck, mended))
}
