package redisstore

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

const (
	// Calls are not made any more after so many failures in a row, or when at
	// least half of so many have failed within breakerWindow.
	breakerRow    = 5
	breakerCalls  = 20
	breakerWindow = time.Second
	// breakerProbe is how often one call tries whether the server is back.
	breakerProbe = time.Second
)

// errHurried is a timeout that says nothing about the server: the callers left
// less time than the backend is given.
var errHurried = errors.New("no answer in less than the backend's time")

// newBreaker keeps a server that does not answer from costing every decision its
// whole budget. An answer counts as one, whatever it says.
func newBreaker() *gobreaker.TwoStepCircuitBreaker[any] {
	return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests:  1,
		Interval:     breakerWindow,
		BucketPeriod: breakerWindow / 10,
		Timeout:      breakerProbe,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= breakerRow || c.Requests >= breakerCalls && 2*c.TotalFailures >= c.Requests
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errHurried) },
		IsSuccessful: func(err error) bool {
			return !errors.Is(err, limiter.ErrTimeout) && !errors.Is(err, limiter.ErrUnreachable)
		},
	})
}
