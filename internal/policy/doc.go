// Package policy decides which limits a request falls under and which counter
// each of them uses. It is the one home of that question: every door, mode and
// tool asks here.
//
// The way through it is
//
//	spec ─ValidatePolicy─► errors that say how to mend
//	spec ─Compile────────► *Policy   one policy, ready to match
//	     ─NewSet─────────► *Set      all policies, indexed by host, method, path
//	Request ─Set.Match───► Matches   rules that count it, each with its key
//
// Everything here is pure: no clock, no network, no Kubernetes client, no
// net/http, no Redis. A compiled Policy and a Set never change, so they are
// shared between goroutines freely. A counter's key is built here up to the
// window number, which only a store can name, because only Redis knows the time.
package policy
