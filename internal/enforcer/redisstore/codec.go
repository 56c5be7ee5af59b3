package redisstore

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// Codes of the script's reply, see check.lua.
const (
	codeStale   = -1 << 55
	codeStep    = 8
	codeBare    = 10
	replyHeader = 3
	// maxNumber is the largest number that Lua counts with one by one.
	maxNumber = 1 << 53
)

// failures are the kinds of failure by the script's number for them.
var failures = []error{
	1: limiter.ErrPoisoned,
	2: limiter.ErrOutOfMemory,
	3: limiter.ErrReadOnly,
	4: limiter.ErrDenied,
	5: limiter.ErrLoading,
	6: limiter.ErrProtocol,
}

// call is one call of the script: a batch, encoded.
type call struct {
	ops    []*limiter.Op
	groups [][]*limiter.Op // ops of one shape
	text   []byte          // all keys and arguments, one after the other
	ends   []int           // where each of them ends in text
	words  []string
	args   []any
	keys   int
	// counters is how many checks ops have together.
	counters int
	// bare calls do without the keys of denied marks.
	bare bool
	// numKeys is keys as a text.
	numKeys string

	reply []int64
	err   error

	self [1]*call
}

var calls = sync.Pool{New: func() any { return &call{} }}

func newCall(ops []*limiter.Op) *call {
	c := calls.Get().(*call)
	c.ops = append(c.ops, ops...)
	return c
}

// alone is a slice of c.
func (c *call) alone() []*call {
	c.self[0] = c
	return c.self[:]
}

// release gives the call's memory to the next one, unless it is unusually large.
func (c *call) release() {
	for i := range c.groups {
		clear(c.groups[i])
		c.groups[i] = c.groups[i][:0]
	}
	clear(c.ops)
	clear(c.words)
	clear(c.args)
	c.ops, c.keys, c.counters, c.bare, c.reply, c.err = c.ops[:0], 0, 0, false, nil, nil
	c.groups, c.text, c.ends, c.words, c.args = c.groups[:0], c.text[:0], c.ends[:0], c.words[:0], c.args[:0]
	if cap(c.text) <= 64<<10 {
		calls.Put(c)
	}
}

// encode lays out the operations for EVALSHA or EVAL, with windows named as of
// now, in seconds of Redis's clock. Operations of the same shape share a group, so
// that what they have in common is sent once.
func (c *call) encode(now int64) {
	for _, op := range c.ops {
		c.place(op)
	}
	for _, group := range c.groups {
		for _, op := range group {
			for i := range op.Checks {
				c.key(&op.Checks[i], now)
			}
		}
	}
	c.keys = len(c.ends)
	for _, group := range c.groups {
		c.group(group, now)
	}
	all := string(c.text)
	start := 0
	for _, end := range c.ends {
		c.words = append(c.words, all[start:end])
		start = end
	}
}

// place puts an operation into the group of its shape.
func (c *call) place(op *limiter.Op) {
	for i := range c.groups {
		if sameShape(c.groups[i][0], op) {
			c.groups[i] = append(c.groups[i], op)
			return
		}
	}
	if len(c.groups) < cap(c.groups) {
		c.groups = c.groups[:len(c.groups)+1]
	} else {
		c.groups = append(c.groups, nil)
	}
	last := &c.groups[len(c.groups)-1]
	*last = append((*last)[:0], op)
}

// sameShape tells that two operations differ in their keys only.
func sameShape(a, b *limiter.Op) bool {
	if a.Kind != b.Kind || len(a.Checks) != len(b.Checks) {
		return false
	}
	for i := range a.Checks {
		x, y := &a.Checks[i], &b.Checks[i]
		if x.Limit != y.Limit || x.Window != y.Window || x.Shadow != y.Shadow || cost(a.Kind, x) != cost(b.Kind, y) {
			return false
		}
	}
	return true
}

// cost is what a check charges: more than limit + 1 makes no difference, unless it
// is a count of attempts.
func cost(kind limiter.Kind, c *limiter.Check) uint64 {
	if kind == limiter.Record {
		return min(c.Cost, maxNumber)
	}
	return min(c.Cost, uint64(c.Limit)+1)
}

func (c *call) key(check *limiter.Check, now int64) {
	start := len(c.text)
	c.text = append(c.text, check.Key...)
	c.text = strconv.AppendInt(c.text, number(now, check.Window), 10)
	end := len(c.text)
	c.ends = append(c.ends, end)
	c.counters++
	if c.bare {
		return
	}
	c.text = append(c.text, c.text[start:end]...)
	c.text = append(c.text, ":denied"...)
	c.ends = append(c.ends, len(c.text))
}

// number is the window's number at a time in Unix seconds.
func number(now, window int64) int64 { return now / window }

func (c *call) group(group []*limiter.Op, now int64) {
	if c.isPlain() {
		c.check(&group[0].Checks[0], limiter.Charge, now)
		return
	}
	kind := int64(group[0].Kind)
	if c.bare {
		kind += codeBare
	}
	c.number(kind)
	c.number(int64(len(group[0].Checks)))
	c.number(int64(len(group)))
	for i := range group[0].Checks {
		check := &group[0].Checks[i]
		c.check(check, group[0].Kind, now)
		if check.Shadow {
			c.number(0)
		} else {
			c.number(1)
		}
	}
}

// isPlain tells the commonest call, which the script knows by how short it is.
func (c *call) isPlain() bool {
	if len(c.ops) != 1 || c.bare {
		return false
	}
	op := c.ops[0]
	return op.Kind == limiter.Charge && len(op.Checks) == 1 && !op.Checks[0].Shadow
}

func (c *call) check(check *limiter.Check, kind limiter.Kind, now int64) {
	c.number(check.Limit)
	c.number(check.Window)
	c.number(number(now, check.Window))
	c.number(int64(cost(kind, check))) // at most 2^53
}

func (c *call) number(n int64) {
	c.text = strconv.AppendInt(c.text, n, 10)
	c.ends = append(c.ends, len(c.text))
}

// arguments are the words of the command. Pointers go into the interfaces, so
// that no word is copied.
func (c *call) arguments(command, script *string) []any {
	c.args = append(c.args[:0], command, script, &c.numKeys)
	for i := range c.words {
		c.args = append(c.args, &c.words[i])
	}
	return c.args
}

// decode fills in the operations' results and appends the stale ones.
func (c *call) decode(stale []*limiter.Op) ([]*limiter.Op, error) {
	reply := c.reply
	if len(reply) != replyHeader+c.counters || reply[0] <= 0 || reply[1] < 0 || reply[1] >= 1e6 {
		return stale, fmt.Errorf("%w: %d numbers for %d counters", limiter.ErrProtocol, len(reply), c.counters)
	}
	now, micros := reply[0], reply[1]
	reply = reply[replyHeader:]
	for _, group := range c.groups {
		for _, op := range group {
			width := len(op.Checks)
			if decodeOp(op, reply[:width], now, micros) {
				stale = append(stale, op)
			}
			reply = reply[width:]
		}
	}
	return stale, nil
}

// decodeOp fills in one operation and tells whether it was stale.
func decodeOp(op *limiter.Op, results []int64, now, micros int64) (stale bool) {
	op.Denied, op.Err = false, nil
	for i, n := range results {
		if n <= codeStale {
			kind := (codeStale - n) / codeStep
			if kind == 0 {
				return true
			}
			op.Err = limiter.ErrProtocol
			if kind < int64(len(failures)) {
				op.Err = failures[kind]
			}
			return false
		}
		check := &op.Checks[i]
		check.Over = n < 0
		if check.Over {
			n = -(n + 1)
		}
		check.Admitted = n
		check.End = (number(now, check.Window) + 1) * check.Window
		check.Left = (check.End-now)*1e9 - micros*1e3
		op.Denied = op.Denied || check.Over && !check.Shadow
	}
	return false
}
