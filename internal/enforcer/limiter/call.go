package limiter

import (
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/policy"
)

// stage is how far a call has come.
type stage uint8

const (
	planned  stage = iota // not charged; perhaps looked at
	suspect               // a look says that it denies
	charged               // charged and not denied
	denied                // the counters that deny kept the attempt
	returned              // charged, and given back
	dropped               // nothing of it could be decided
)

// call is the part of a request that one backend counts; on a sharded backend, the
// part of it whose counters share a tag.
type call struct {
	backend *Backend
	tag     string
	// store is the backend's, or the fallback after that failed.
	store Store
	local bool
	stage stage
	op    Op
	rules []*policy.Rule // of op.Checks, one by one
	batch [1]*Op         // op, as Store.Do takes it
}

// reset empties a call and keeps its room, if that is little.
func (c *call) reset() {
	checks, rules := c.op.Checks[:cap(c.op.Checks)], c.rules[:cap(c.rules)]
	if len(checks) > maxKeptChecks {
		*c = call{}
		return
	}
	clear(checks)
	clear(rules)
	*c = call{op: Op{Checks: checks[:0]}, rules: rules[:0]}
}

// plan sorts the matches by backend, and turns each into a check. A counter that
// is met twice is charged once.
func (d *Decision) plan(backends []*Backend, req *policy.Request) {
	cost := max(req.Cost, 1)
	for i := range d.matcher.Matches {
		match := &d.matcher.Matches[i]
		if match.Deny {
			continue
		}
		c := d.callTo(backends[match.Rule.Policy.Index], match.Key)
		if same := c.find(match); same != nil {
			same.Cost = max(same.Cost, cost)
			continue
		}
		c.rules = append(c.rules, match.Rule)
		c.op.Checks = append(c.op.Checks, Check{
			Key:    match.Key,
			Limit:  match.Rule.Limit,
			Window: match.Rule.Window,
			Cost:   cost,
			Shadow: isShadow(match.Rule),
		})
	}
}

// callTo finds or begins the call to a backend that a counter belongs to.
func (d *Decision) callTo(b *Backend, key string) *call {
	tag := ""
	if b.Sharded {
		tag = tagOf(key)
	}
	for i := range d.calls {
		if d.calls[i].backend == b && d.calls[i].tag == tag {
			return &d.calls[i]
		}
	}
	if len(d.calls) < cap(d.calls) {
		d.calls = d.calls[:len(d.calls)+1]
	} else {
		d.calls = append(d.calls, call{})
	}
	c := &d.calls[len(d.calls)-1]
	c.backend, c.tag, c.store, c.local, c.stage = b, tag, b.Store, false, planned
	c.op.Checks, c.rules = c.op.Checks[:0], c.rules[:0]
	return c
}

// tagOf is what is in the first braces of a key: counters with the same are on the
// same server.
func tagOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return tag
}

// find returns the check of a match's counter. Only a request with descriptors
// meets a rule more than once.
func (c *call) find(match *policy.Match) *Check {
	if match.Descriptor <= 0 {
		return nil
	}
	for i, rule := range c.rules {
		if rule == match.Rule && c.op.Checks[i].Key == match.Key {
			return &c.op.Checks[i]
		}
	}
	return nil
}

// do carries out one operation on the call's counters, until end. It goes on when
// the caller goes away meanwhile: what is under way can't be called back.
func (c *call) do(end time.Time, kind Kind) {
	within := newBudget(end)
	defer within.release()
	c.op.Kind, c.op.Denied, c.op.Err = kind, false, nil
	c.setUnknown(false)
	c.batch[0] = &c.op
	c.store.Do(within, c.batch[:])
	switch {
	case c.op.Err != nil:
	case kind == Look && c.op.Denied:
		c.stage = suspect
	case kind == Look:
	case c.op.Denied:
		c.stage = denied
	default:
		c.stage = charged
	}
}

// setUnknown marks all counters as asked for or not.
func (c *call) setUnknown(unknown bool) {
	for i := range c.op.Checks {
		c.op.Checks[i].Unknown = unknown
	}
}
