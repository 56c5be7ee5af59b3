package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// right is a command that a user must be able to give, and how to try it so that
// it changes nothing: a server looks at rights before it looks at arguments.
type right struct {
	// rule gives the right in ACL SETUSER.
	rule string
	args []any
	// keyed commands have the key for their argument at this place.
	keyed int
}

// dataRights are what counting needs: the script, what it does, and the server's
// time.
var dataRights = []right{
	{"+evalsha", []any{"EVALSHA", strings.Repeat("0", 40), 1, ""}, 3},
	{"+eval", []any{"EVAL", "return 1", 1, ""}, 3},
	{"+time", []any{"TIME"}, 0},
	{"+incrby", []any{"INCRBY", "", "x"}, 1},
	{"+decrby", []any{"DECRBY", "", "x"}, 1},
	{"+get", []any{"GET", ""}, 1},
	{"+set", []any{"SET", "", "0", "x"}, 1},
	{"+del", []any{"DEL", ""}, 1},
	{"+expireat", []any{"EXPIREAT", "", "x"}, 1},
	{"+ttl", []any{"TTL", ""}, 1},
}

// databaseRights are what a database other than 0 needs.
func databaseRights(number int) []right {
	return []right{{"+select", []any{"SELECT", number}, 0}}
}

// clusterRights are what a node of a Cluster is asked beside that: which node has
// which slots, and for a slot that is on its way.
var clusterRights = []right{
	{"+cluster|slots", []any{"CLUSTER", "SLOTS"}, 0},
	{"+asking", []any{"ASKING"}, 0},
}

// sentinelRights are what Sentinels are asked. Subscribing comes last: a
// connection is of no other use after that.
var sentinelRights = []right{
	{"+sentinel|get-master-addr-by-name", []any{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", ""}, 2},
	{"+sentinel|sentinels", []any{"SENTINEL", "SENTINELS", ""}, 2},
	{"+ping", []any{"PING"}, 0},
	{"+subscribe", []any{"SUBSCRIBE", "+switch-master"}, 0},
	{"+subscribe", []any{"SUBSCRIBE", "+replica-reconf-done"}, 0},
}

// sentinelChannels are the rule for what is subscribed to.
const sentinelChannels = "&+switch-master &+replica-reconf-done"

// lacks tries rights on one connection and returns the rules of those that are
// missing. pattern is the rule for the keys, or what takes their place. A fault
// is something else that is wrong.
func lacks(ctx context.Context, client *redis.Client, rights []right, key, pattern string) (missing []string, fault Fault) {
	conn := client.Conn()
	defer func() { _ = conn.Close() }()
	var other Fault
	for _, r := range rights {
		err := conn.Do(ctx, r.with(key)...).Err()
		rule := r.rule
		switch f := diagnose(err); f {
		case "":
			continue
		case FaultMissingRights:
			if !isCommandRefused(err) {
				rule = pattern
			}
		case FaultMissingCommand:
			other = f
		case FaultNoAnswer, FaultClosed, FaultLoginRequired, FaultUnintelligible:
			return nil, f
		default:
			// The right is there: rights are looked at first.
			if other == "" {
				other = f
			}
			continue
		}
		if !slices.Contains(missing, rule) {
			missing = append(missing, rule)
		}
	}
	if other == "" && len(missing) > 0 {
		other = FaultMissingRights
	}
	return missing, other
}

func (r right) with(key string) []any {
	if r.keyed == 0 {
		return r.args
	}
	args := slices.Clone(r.args)
	args[r.keyed] = key
	return args
}

// isCommandRefused tells a command that may not be given from keys or channels
// that may not be reached. Servers say both with NOPERM.
func isCommandRefused(err error) bool {
	text := err.Error()
	return strings.Contains(text, " to run the '") || !strings.Contains(text, " key") && !strings.Contains(text, " channel")
}
