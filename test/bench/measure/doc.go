// Package measure is what benchmarks share: it drives load from many callers,
// lets contenders take turns on the same machine, takes medians, prints tables
// and fails a benchmark that falls short.
//
// It holds no opinion on what is good enough: each benchmark states its bounds.
package measure
