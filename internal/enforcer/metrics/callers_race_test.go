//go:build race

package metrics

// manyCallers are fewer under the race detector, which makes each ten times as
// expensive and has nothing to find in a single goroutine.
const manyCallers = 100_000
