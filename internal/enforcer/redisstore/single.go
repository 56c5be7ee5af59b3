package redisstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// single executes on one server, where all keys are in one slot.
type single struct{ client *redis.Client }

func (single) group(ops []*limiter.Op) []*call { return newCall(ops).alone() }

func (s single) execute(ctx context.Context, calls []*call) {
	for _, c := range calls {
		cmd := c.command(ctx, false)
		if err := s.client.Process(ctx, cmd); isNoScript(err) {
			cmd = c.command(ctx, true)
			_ = s.client.Process(ctx, cmd)
		}
		c.reply, c.err = cmd.Result()
	}
}

// command is a call of the script that the client must not repeat by itself.
type command struct{ *redis.IntSliceCmd }

// NoRetry tells go-redis that the command may have been carried out even if no
// answer came.
func (command) NoRetry() bool { return true }

var evalSHA, eval = "EVALSHA", "EVAL"

// command calls the script by its name, or by its text.
func (c *call) command(ctx context.Context, byText bool) command {
	c.numKeys = strconv.Itoa(c.keys)
	name, script := &evalSHA, &ScriptSHA
	if byText {
		name, script = &eval, &Script
	}
	return command{redis.NewIntSliceCmd(ctx, c.arguments(name, script)...)}
}
