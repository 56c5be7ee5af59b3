//go:build !race

package metrics

// manyCallers is how many distinct keys the series are counted over.
const manyCallers = 1_000_000
