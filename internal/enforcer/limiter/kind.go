package limiter

import (
	"context"
	"errors"
)

// Kinds of failure beside those of a Store's errors.
const (
	// KindCanceled: the caller went away.
	KindCanceled = "canceled"
	// KindOther: an error that wraps none of this package's.
	KindOther = "other"
)

var kinds = [...]struct {
	err  error
	kind string
}{
	{ErrTimeout, "timeout"},
	{ErrUnreachable, "unreachable"},
	{ErrStale, "stale"},
	{ErrPoisoned, "poisoned"},
	{ErrOutOfMemory, "out_of_memory"},
	{ErrReadOnly, "read_only"},
	{ErrLoading, "loading"},
	{ErrDenied, "denied"},
	{ErrCircuitOpen, "circuit_open"},
	{ErrOverloaded, "overloaded"},
	{ErrProtocol, "protocol"},
}

// FailureKinds returns every kind of failure that there is.
func FailureKinds() []string {
	all := []string{KindCanceled, KindOther}
	for _, k := range kinds {
		all = append(all, k.kind)
	}
	return all
}

// KindOf names the kind of a Store's error, for metrics and logs.
func KindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return KindOther
}

// MayHaveHappened tells that an operation that ended with an error may have been
// carried out, so that it must not be repeated.
func MayHaveHappened(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrProtocol)
}

// failureKind is KindOf, unless the caller of the decision went away meanwhile:
// that says nothing about the store.
func failureKind(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return KindCanceled
	}
	return KindOf(err)
}
