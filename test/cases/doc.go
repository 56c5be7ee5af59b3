// Package cases replays what went wrong for people who run rate limiters: each
// test is an input that once hurt somebody, and the answer that is right.
//
// Everything is real except the cluster: policies in YAML, enforcers that watch
// the file, sockets, and a redis-server that each test has to itself. Enforcers
// name windows by that server's clock, so a test that needs a whole window waits
// for a fresh one by the same clock; all others count in windows of 366 days.
package cases
