package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// Probe says which counters a login must reach.
type Probe struct {
	// KeyPrefix starts every key. Defaults to policy.DefaultKeyPrefix.
	KeyPrefix string
	// Namespaces are those whose policies log in like this. At least one.
	Namespaces []string
}

// Report is what a Check found.
type Report struct {
	// Fault is what keeps the Redis from counting; "" for nothing.
	Fault Fault
	// Server is what has the fault: "Sentinel a:26379".
	Server string
	// Missing are the rules of ACL SETUSER that would mend a lack of rights, or
	// the commands that the server lacks.
	Missing []string
	// Facts are known as far as the check came.
	Facts Facts
}

// Message says what is wrong and how to mend it, in words of Weir's own: none are
// a server's, and there is no secret in it.
func (r Report) Message() string {
	if r.Fault == "" {
		return r.Facts.String()
	}
	return r.Fault.describe(r.Server, strings.Join(r.Missing, " "))
}

const (
	// probeTag is the part of a probe's keys that decides about their slot.
	probeTag = "{weir-probe}"
	// probeWindow is how long a probe's counters live, in seconds, at most.
	probeWindow = 10
	// defaultCheckTime bounds a Check whose context has no deadline.
	defaultCheckTime = 15 * time.Second
)

// Check logs in to a Redis as a Store would, looks at the rights of the user there
// on every server that holds counters, and counts once for each namespace, on a
// counter of its own that is gone after ten seconds. It says which fault it met
// first. It needs no right that a Store does not need; with +info it finds out
// more.
func Check(ctx context.Context, cfg Config, probe Probe) Report {
	cfg = cfg.withDefaults()
	if probe.KeyPrefix == "" {
		probe.KeyPrefix = policy.DefaultKeyPrefix
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultCheckTime)
		defer cancel()
	}
	// A check waits longer than a decision, so that it can tell slow from silent.
	cfg.Timeout = max(cfg.Timeout, cfg.DialTimeout)
	c := &checkup{cfg: cfg, probe: probe}
	c.report.Facts.Replicas = -1
	if err := cfg.check(); err != nil {
		c.fail(FaultUnintelligible, "this backend", nil)
		return c.report
	}
	if c.servers(ctx) {
		c.count(ctx)
	}
	return c.report
}

// checkup is a Check under way. Its methods tell whether all is well so far.
type checkup struct {
	cfg    Config
	probe  Probe
	report Report
}

func (c *checkup) fail(f Fault, server string, missing []string) bool {
	c.report.Fault, c.report.Server, c.report.Missing = f, server, missing
	return f == ""
}

// servers looks at each server that holds counters.
func (c *checkup) servers(ctx context.Context) bool {
	switch c.cfg.Mode {
	case v1alpha1.RedisSentinel:
		primary, ok := c.primary(ctx)
		return ok && c.alone(ctx, announced("the primary", primary), primary)
	case v1alpha1.RedisCluster:
		return c.seeds(ctx) && c.cluster(ctx)
	default:
		return c.alone(ctx, "the server "+c.cfg.Addresses[0], c.cfg.Addresses[0])
	}
}

// alone looks at the one server with counters.
func (c *checkup) alone(ctx context.Context, name, address string) bool {
	client := redis.NewClient(c.options(address))
	defer func() { _ = client.Close() }()
	g, fault := c.meet(ctx, client, address)
	switch {
	case fault != "":
	case g.mode == modeSentinel:
		fault = FaultIsSentinel
	case g.mode == modeCluster:
		fault = FaultIsCluster
	default:
		c.report.Facts = factsOf(ctx, client, g)
		return c.rights(ctx, client, name)
	}
	return c.fail(fault, name, nil)
}

// options are those for one server. Its database is chosen with the rights: a
// connection that begins with that would fail as a whole.
func (c *checkup) options(address string) *redis.Options {
	o := options(c.cfg, c.cfg.Timeout)
	o.Addr, o.DB = address, 0
	return o
}

// meet greets a server, and looks again at why it could not be reached.
func (c *checkup) meet(ctx context.Context, client *redis.Client, address string) (greeting, Fault) {
	g, fault := greet(ctx, client)
	switch fault {
	case FaultNoAnswer, FaultClosed, FaultUnintelligible:
		fault = look{address, c.cfg.TLS, c.cfg.DialTimeout}.fault(ctx, fault)
	case FaultTLSNotSpoken, FaultTLSHandshake:
		if c.cfg.TLS == nil {
			fault = FaultTLSRequired
		}
	}
	return g, fault
}

// rights looks at what the user may do on a server with counters.
func (c *checkup) rights(ctx context.Context, client *redis.Client, name string) bool {
	var missing []string
	for i, namespace := range c.probe.Namespaces {
		wanted := c.wanted()
		if i > 0 {
			wanted = dataRights
		}
		pattern := fmt.Sprintf("~%s:{*}:%s/*", c.probe.KeyPrefix, namespace)
		rules, fault := lacks(ctx, client, wanted, c.key(namespace)+"rights", pattern)
		if fault != "" && fault != FaultMissingRights {
			return c.fail(fault, name, rules)
		}
		for _, rule := range rules {
			if !slices.Contains(missing, rule) {
				missing = append(missing, rule)
			}
		}
	}
	if len(missing) > 0 {
		return c.fail(FaultMissingRights, name, missing)
	}
	return true
}

// wanted are the rights that this mode and database need.
func (c *checkup) wanted() []right {
	switch {
	case c.cfg.Mode == v1alpha1.RedisCluster:
		return slices.Concat(dataRights, clusterRights)
	case c.cfg.Database != 0:
		return slices.Concat(dataRights, databaseRights(c.cfg.Database))
	}
	return dataRights
}

// key is that of a namespace's probe, without the window's number.
func (c *checkup) key(namespace string) string {
	return fmt.Sprintf("%s:%s:%s/weir-probe/probe:%d:", c.probe.KeyPrefix, probeTag, namespace, probeWindow)
}

// count lets a Store count, once within a limit and once over it.
func (c *checkup) count(ctx context.Context) bool {
	name := "the server " + c.cfg.Addresses[0]
	if c.cfg.Mode != v1alpha1.RedisStandalone {
		name = "what is behind " + strings.Join(c.cfg.Addresses, " and ")
	}
	store, err := New(c.cfg)
	if err != nil {
		return c.fail(FaultUnintelligible, name, nil)
	}
	defer func() { _ = store.Close() }()
	for _, namespace := range c.probe.Namespaces {
		for _, op := range []limiter.Op{{Kind: limiter.Charge}, {Kind: limiter.Refund}, {Kind: limiter.Charge}} {
			op.Checks = []limiter.Check{{Key: c.key(namespace), Limit: 0, Window: probeWindow, Cost: 1}}
			store.Do(ctx, []*limiter.Op{&op})
			if op.Err != nil {
				return c.fail(diagnoseOp(op.Err), name, nil)
			}
		}
	}
	return true
}
