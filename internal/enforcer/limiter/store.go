package limiter

import (
	"context"
	"errors"
)

// Store keeps counters. One Store stands for one backend.
//
// Implementations are safe for concurrent use and pass the suite in storetest.
type Store interface {
	// Do carries out a batch of operations, each all or nothing by itself, and
	// fills in their results. An operation that could not be carried out has its
	// Err set; the others are not touched by that. Do returns within the context's
	// deadline, and an operation that may have been carried out is never repeated.
	Do(ctx context.Context, batch []*Op)
}

// Kind is what an operation does.
type Kind uint8

// The kinds of operation.
const (
	// Charge counts the request on every counter, unless one that enforces would
	// be over: then the counters that deny keep the attempt, and the others are
	// as if nothing had happened.
	Charge Kind = iota
	// Look decides like Charge and changes nothing. A Look with cost 0 is over
	// when the limit is used up (admitted ≥ limit).
	Look
	// Refund gives back up to Cost of what was admitted, never below zero, and
	// creates no counter.
	Refund
	// Debit charges every counter even when that takes it over its limit.
	Debit
	// Record counts attempts that were denied without asking, on counters that
	// there are. What is admitted stays as it is.
	Record
)

// Recaller is a Store that may know an answer without asking.
type Recaller interface {
	// Recall fills in a Look, and tells that it is Denied by what is known. Nothing
	// is charged or counted.
	Recall(op *Op) bool
}

// Op is one operation on the counters of one request.
type Op struct {
	Kind   Kind
	Checks []Check

	// Denied is set when a check that enforces is over.
	Denied bool
	// Err is set when the operation was not carried out, or may not have been.
	// Wraps one of the errors of this package; Checks' results mean nothing then.
	Err error
}

// Check is one counter of an operation: what to charge, and what came out.
type Check struct {
	// Key is the counter's name up to and without the window number (policy.Match).
	Key string
	// Limit is 0..2^53−1.
	Limit int64
	// Window is the window's length in seconds, ≥ 1.
	Window int64
	// Cost is how much to charge; what is over Limit+1 counts as Limit+1, except in
	// a Record.
	Cost uint64
	// Shadow counters are recorded on, but never deny.
	Shadow bool

	// Over tells that the limit is reached: this cost does not fit.
	Over bool
	// Admitted is how much was admitted in this window, this operation included
	// if it was admitted. After a limit was raised or something given back
	// within the window it may be reported too high by what was denied before,
	// never too low; what is decided is exact.
	Admitted int64
	// Window's end by the store's clock, in Unix seconds.
	End int64
	// Left is how long until End, in nanoseconds, > 0.
	Left int64
	// Unknown tells that this counter was not asked for, because another is known
	// to deny. The other results mean nothing then.
	Unknown bool
}

// Remaining is how much may still be admitted in this window, ≥ 0.
func (c *Check) Remaining() int64 { return max(0, c.Limit-c.Admitted) }

// Kinds of failure that a Store reports. Each is one value of the metric's label
// "kind", so there are few of them.
var (
	// ErrTimeout: no answer within the budget; the operation may have happened.
	ErrTimeout = errors.New("no answer in time")
	// ErrUnreachable: no connection, or it broke; the operation may have happened.
	ErrUnreachable = errors.New("store unreachable")
	// ErrStale: the window could not be named rightly within the budget.
	ErrStale = errors.New("window moved on")
	// ErrPoisoned: the counter's key holds something that is not a counter.
	ErrPoisoned = errors.New("key holds no counter")
	// ErrOutOfMemory: the store takes no more data.
	ErrOutOfMemory = errors.New("store out of memory")
	// ErrReadOnly: the store takes no writes.
	ErrReadOnly = errors.New("store is read-only")
	// ErrLoading: the store is starting, or has no primary at the moment.
	ErrLoading = errors.New("store not ready")
	// ErrDenied: the store refused the credentials or a command.
	ErrDenied = errors.New("store refused access")
	// ErrCircuitOpen: the store failed so often of late that it was not asked.
	ErrCircuitOpen = errors.New("store is given time to recover")
	// ErrOverloaded: too many operations wait for the store already.
	ErrOverloaded = errors.New("too many operations wait for the store")
	// ErrProtocol: the store answered something unexpected.
	ErrProtocol = errors.New("unexpected answer")
)
