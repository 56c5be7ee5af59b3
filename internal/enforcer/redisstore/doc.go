// Package redisstore keeps counters in Redis, by one Lua script that decides a
// whole batch in one round trip.
//
// It names windows by Redis's clock, of which it keeps the offset to its own
// monotonic clock; wall clocks are never used. An operation that may have been
// carried out is never sent again: what is repeated is a call that Redis refused
// as a whole (NOSCRIPT), and an operation that the script left alone because its
// window was over.
package redisstore
