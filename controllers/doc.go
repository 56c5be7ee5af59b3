// Package controllers keeps what is known of a cluster up to date: it reconciles
// RateLimitPolicies and RedisBackends into the policy cache, on every replica, and
// writes their statuses, on the leader.
//
// Decisions are pure functions of what was gathered: of a policy, what keeps it from
// being enforced (resolve.go), and what its status says (status.go, enforced.go).
//
// What always holds:
//
//   - A spec is never written. A status is written when it says something new.
//   - Objects are decoded one by one, so that one that can't be read stops no other.
//   - What can't be resolved any more is held: enforcers keep what they have.
//   - Nothing has a finalizer: deleting ends at once, in every order.
//   - Nothing of a Secret is in a status, an event or a log.
package controllers
