// Package metrics shows an enforcer's work to Prometheus.
//
// Labels are names of policies, rules and backends, and words of fixed lists. A
// caller's text never is one, so the number of series does not grow with callers.
// Series of rules and backends that are gone go with the snapshot that drops them.
//
// The counters of each rule are looked up when a snapshot comes into force, so a
// decision touches counters and no labels.
package metrics
