package measure

import "time"

// Contender is one of several ways to do the same.
type Contender struct {
	Name string
	// Run is one round.
	Run func() Round

	rounds []Round
}

// Alternate lets each contender have a round, and that so many times: what
// disturbs the machine meanwhile disturbs them all. Each time another one begins,
// so that nobody always comes after the same one.
func Alternate(rounds int, contenders ...*Contender) {
	for round := range rounds {
		for i := range contenders {
			c := contenders[(round+i)%len(contenders)]
			c.rounds = append(c.rounds, c.Run())
		}
	}
}

// Median is a round with the median of each number over the rounds.
func (c *Contender) Median() Round {
	return Round{
		Rate:   medianOf(c.rounds, func(r Round) float64 { return r.Rate }),
		P50:    medianOf(c.rounds, func(r Round) time.Duration { return r.P50 }),
		P99:    medianOf(c.rounds, func(r Round) time.Duration { return r.P99 }),
		Own:    medianOf(c.rounds, func(r Round) time.Duration { return r.Own }),
		Server: medianOf(c.rounds, func(r Round) time.Duration { return r.Server }),
	}
}
