package failurelog

import "github.com/weir-dev/weir/internal/enforcer/limiter"

// hints say what to look at, by kind of failure.
var hints = map[string]string{
	"timeout":         "look at the load of Redis and the network to it, or raise timeouts.decision",
	"unreachable":     "check the addresses of the backend, its TLS settings, and that Redis runs",
	"stale":           "the clock of Redis jumped, or answers take longer than a window",
	"poisoned":        "a key holds something that is no counter: give this backend a keyPrefix or a database of its own",
	"out_of_memory":   "raise maxmemory of Redis, or let it evict volatile keys",
	"read_only":       "the address is that of a replica: name the primary, or use mode Sentinel or Cluster",
	"loading":         "Redis starts or fails over, and this ends by itself",
	"denied":          "check the backend's credentials, and that its user may run scripts on its keys",
	"circuit_open":    "Redis failed repeatedly and is asked once a second: look at the other kinds",
	"overloaded":      "more requests than Redis can decide: look at its load, or spread policies over several",
	"protocol":        "check that the address is that of a Redis, and of a version that is supported",
	limiter.KindOther: "this is not a kind of failure that is known: please report it",
}
