package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// percentile is the value that so many in a hundred do not exceed; 0 of nothing.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

// medianOf is the median of one number of each round; of an even number of
// rounds the upper one.
func medianOf[T cmp.Ordered](rounds []Round, number func(Round) T) T {
	values := make([]T, len(rounds))
	for i, r := range rounds {
		values[i] = number(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// Gain is how many times as fast one contender is as another.
type Gain struct {
	// Middle is the median over the rounds. The true one is between Low and High
	// in 19 of 20 cases, by the sign test.
	Low, Middle, High float64
}

// Over compares c with another contender round by round, so that what disturbed
// both hardly matters. They had as many rounds.
func (c *Contender) Over(other *Contender) Gain {
	gains := make([]float64, len(c.rounds))
	for i := range gains {
		gains[i] = c.rounds[i].Rate / other.rounds[i].Rate
	}
	slices.Sort(gains)
	n := len(gains)
	low := max(0, int(float64(n)/2-0.98*math.Sqrt(float64(n))))
	return Gain{gains[low], gains[n/2], gains[n-1-low]}
}

// String shows the middle and the bounds.
func (g Gain) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", g.Middle, g.Low, g.High) }
