package redisstore

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Facts are what a Check learned about the servers. Unknown is what a server or
// the user's rights keep back.
type Facts struct {
	// Version of the primary, of the oldest one in a Cluster; "" is unknown.
	Version string
	// Role is "primary" or "replica"; "" is unknown.
	Role string
	// Primaries is how many the Cluster has; 0 in other modes.
	Primaries int
	// Replicas is how many are connected, to all primaries of a Cluster together;
	// -1 is unknown.
	Replicas int
	// Eviction tells whether the server may drop counters.
	Eviction Eviction
}

// Eviction is what a server does when its memory is full.
type Eviction uint8

// What a server may do when its memory is full.
const (
	// EvictionUnknown: the user has no right for INFO.
	EvictionUnknown Eviction = iota
	// EvictionNever: it refuses writes, or its memory has no bound.
	EvictionNever
	// EvictionRisk: it drops keys, counters among them.
	EvictionRisk
)

// String is the facts in a line.
func (f Facts) String() string {
	var parts []string
	if f.Version != "" {
		parts = append(parts, "version "+f.Version)
	}
	switch {
	case f.Primaries == 1:
		parts = append(parts, "1 primary")
	case f.Primaries > 1:
		parts = append(parts, fmt.Sprint(f.Primaries, " primaries"))
	case f.Role != "":
		parts = append(parts, f.Role)
	}
	switch {
	case f.Replicas == 1:
		parts = append(parts, "1 replica connected")
	case f.Replicas >= 0:
		parts = append(parts, fmt.Sprint(f.Replicas, " replicas connected"))
	}
	switch f.Eviction {
	case EvictionNever:
		parts = append(parts, "evicts no counters")
	case EvictionRisk:
		parts = append(parts, "may evict counters: set maxmemory-policy noeviction")
	default:
		parts = append(parts, "replicas and eviction unknown: grant +info to see them")
	}
	return strings.Join(parts, ", ")
}

// merge adds another primary of the same Cluster.
func (f Facts) merge(o Facts) Facts {
	f.Primaries += o.Primaries
	if olderThan(o.Version, f.Version) {
		f.Version = o.Version
	}
	if f.Replicas < 0 || o.Replicas < 0 {
		f.Replicas = -1
	} else {
		f.Replicas += o.Replicas
	}
	switch {
	case f.Eviction == EvictionRisk || o.Eviction == EvictionRisk:
		f.Eviction = EvictionRisk
	case o.Eviction == EvictionUnknown:
		f.Eviction = EvictionUnknown
	}
	return f
}

// olderThan compares versions number by number.
func olderThan(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return len(as) < len(bs)
}

// greeting is what a server says of itself to everybody who is logged in.
type greeting struct{ version, mode, role string }

// The modes of a greeting that matter.
const (
	modeSentinel = "sentinel"
	modeCluster  = "cluster"
)

// greet logs in. Servers without HELLO say nothing of themselves.
func greet(ctx context.Context, client *redis.Client) (greeting, Fault) {
	reply, err := client.Do(ctx, "HELLO", "2").Slice()
	if fault := diagnose(err); fault != "" && fault != FaultMissingCommand && fault != FaultMissingRights {
		return greeting{}, fault
	}
	var g greeting
	for i := 0; i+1 < len(reply); i += 2 {
		value, _ := reply[i+1].(string)
		switch reply[i] {
		case "version":
			g.version = versionOf(value)
		case "mode":
			g.mode = value
		case "role":
			g.role = roles[value]
		}
	}
	return g, ""
}

var roles = map[string]string{"master": "primary", "primary": "primary", "slave": "replica", "replica": "replica"}

var versionForm = regexp.MustCompile(`^[0-9][0-9A-Za-z.+-]{0,31}$`)

// versionOf takes over what looks like a version only.
func versionOf(text string) string {
	if versionForm.MatchString(text) {
		return text
	}
	return ""
}

// factsOf asks INFO, for which the user may have no right.
func factsOf(ctx context.Context, client *redis.Client, g greeting) Facts {
	f := Facts{Version: g.version, Role: g.role, Replicas: -1}
	text, err := client.Info(ctx).Result()
	if err != nil {
		return f
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	if f.Version == "" {
		f.Version = versionOf(info["redis_version"])
	}
	if f.Role == "" {
		f.Role = roles[info["role"]]
	}
	if n, err := strconv.Atoi(info["connected_slaves"]); err == nil && n >= 0 {
		f.Replicas = n
	}
	f.Eviction = evictionOf(info["maxmemory"], info["maxmemory_policy"])
	return f
}

func evictionOf(most, rule string) Eviction {
	bytes, err := strconv.ParseUint(most, 10, 64)
	switch {
	case err != nil || rule == "":
		return EvictionUnknown
	case bytes > 0 && rule != "noeviction":
		return EvictionRisk
	}
	return EvictionNever
}
