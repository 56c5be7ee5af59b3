package redisstore

import (
	"context"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// oneByOne decides an operation while its slot is on its way to another server.
// Until all is there a call can have one key only: each counter is decided by
// itself, without the mark of what was denied, and what was charged although
// another counter denies is given back.
//
// Without marks, attempts stand for what was admitted, and a denied one is not
// kept. So it may deny what would have been admitted after a limit was raised, and
// never admits more.
func (n *node) oneByOne(ctx context.Context, op *limiter.Op) {
	parts := make([]limiter.Op, len(op.Checks))
	all := make([]*limiter.Op, len(parts))
	for i := range parts {
		parts[i] = limiter.Op{Kind: op.Kind, Checks: op.Checks[i : i+1 : i+1]}
		all[i] = &parts[i]
	}
	_ = n.decide(ctx, all, bareCalls)
	op.Denied, op.Err = false, nil
	for i := range parts {
		op.Denied = op.Denied || parts[i].Denied
		if parts[i].Err != nil {
			op.Err = parts[i].Err
		}
	}
	if op.Kind == limiter.Charge && (op.Denied || op.Err != nil) {
		n.takeBack(ctx, parts)
	}
}

// bareCalls makes a call for each operation; each has one check.
func bareCalls(ops []*limiter.Op) []*call {
	calls := make([]*call, len(ops))
	for i := range ops {
		calls[i] = newCall(ops[i : i+1])
		calls[i].bare = true
	}
	return calls
}

// takeBack gives back what was charged of a request that is refused.
func (n *node) takeBack(ctx context.Context, parts []limiter.Op) {
	var refunds []*limiter.Op
	for i := range parts {
		check := &parts[i].Checks[0]
		if parts[i].Err == nil && !check.Over {
			refunds = append(refunds, &limiter.Op{Kind: limiter.Refund, Checks: []limiter.Check{*check}})
			check.Admitted -= int64(cost(limiter.Charge, check))
		}
	}
	if len(refunds) > 0 {
		_ = n.decide(ctx, refunds, bareCalls)
	}
}
