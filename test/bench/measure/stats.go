package measure

import (
	"cmp"
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
