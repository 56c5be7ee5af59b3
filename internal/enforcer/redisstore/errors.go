package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
)

// The library would log addresses and what servers say; what is worth knowing
// reaches the Observer.
func init() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {
	slog.Debug("redis client reports trouble")
}

// isNoScript tells that Redis has carried out nothing because it does not know
// the script.
func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT")
}

// isMoving tells that Redis has carried out nothing because something is changing
// places: a slot has gone, or a primary has become a replica.
func isMoving(err error) bool {
	if !isAnswer(err) {
		return false
	}
	text := err.Error()
	return strings.HasPrefix(text, "READONLY") || strings.HasPrefix(text, "MOVED") || strings.HasPrefix(text, "ASK")
}

// isSplit tells that Redis has carried out nothing because the keys of a call are
// on two servers: their slot is on its way from one to the other.
func isSplit(err error) bool { return isAnswer(err) && strings.HasPrefix(err.Error(), "TRYAGAIN") }

// isAnswer tells that an error is what a server said.
func isAnswer(err error) bool {
	if err == nil {
		return false
	}
	var refused redis.Error
	return errors.As(err, &refused)
}

// refusals are the kinds of failure by how Redis's answer begins.
var refusals = []struct {
	prefix string
	kind   error
}{
	{"OOM", limiter.ErrOutOfMemory},
	{"READONLY", limiter.ErrReadOnly},
	{"LOADING", limiter.ErrLoading},
	{"MASTERDOWN", limiter.ErrLoading},
	{"CLUSTERDOWN", limiter.ErrLoading},
	{"TRYAGAIN", limiter.ErrLoading},
	{"MOVED", limiter.ErrLoading},
	{"ASK", limiter.ErrLoading},
	{"BUSY", limiter.ErrLoading},
	{"NOAUTH", limiter.ErrDenied},
	{"WRONGPASS", limiter.ErrDenied},
	{"NOPERM", limiter.ErrDenied},
	{"ERR invalid password", limiter.ErrDenied},
	{"ERR AUTH", limiter.ErrDenied},
	{"ERR Client sent AUTH", limiter.ErrDenied},
}

// classify turns an error of the client into one of the limiter's kinds. What
// the peer said is left out: it may hold anything.
func classify(ctx context.Context, err error) error {
	var timeout net.Error
	var refused redis.Error
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", limiter.ErrTimeout, context.Canceled)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout), ctx.Err() != nil,
		errors.As(err, &timeout) && timeout.Timeout():
		return limiter.ErrTimeout
	case errors.As(err, &refused):
		return kindOf(refused.Error())
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, redis.ErrClosed):
		return limiter.ErrUnreachable
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return limiter.ErrUnreachable
	}
	if strings.HasPrefix(err.Error(), "redis: ") {
		return limiter.ErrProtocol
	}
	return limiter.ErrUnreachable
}

func kindOf(answer string) error {
	for _, refusal := range refusals {
		if strings.HasPrefix(answer, refusal.prefix) {
			return refusal.kind
		}
	}
	return limiter.ErrProtocol
}
