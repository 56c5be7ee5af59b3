package redisstore

import (
	"context"
	"net"
	"regexp"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// primary asks all Sentinels where the primary is, and believes the first in the
// order of addresses that knows.
func (c *checkup) primary(ctx context.Context) (address string, ok bool) {
	found := make([]string, len(c.cfg.Addresses))
	reports := c.each(func(i int, r *Report) { found[i] = c.sentinel(ctx, c.cfg.Addresses[i], r) })
	for i := range reports {
		if reports[i].Fault == "" {
			return found[i], true
		}
	}
	first := mostTelling(reports)
	return "", c.fail(first.Fault, first.Server, first.Missing)
}

// announcedForm is what addresses look like that servers tell of each other.
var announcedForm = regexp.MustCompile(`^[0-9A-Za-z.:_\[\]-]{1,270}$`)

// announced names a server by an address that another one told.
func announced(kind, address string) string {
	if announcedForm.MatchString(address) {
		return kind + " " + address
	}
	return kind
}

// each fills in a report for each address, all at the same time.
func (c *checkup) each(look func(i int, r *Report)) []Report {
	reports := make([]Report, len(c.cfg.Addresses))
	var group sync.WaitGroup
	for i := range reports {
		group.Go(func() { look(i, &reports[i]) })
	}
	group.Wait()
	return reports
}

// mostTelling is the first report about a server that was reached, or the first.
func mostTelling(reports []Report) Report {
	for _, r := range reports {
		if r.Fault.Reason() != v1alpha1.ReasonUnreachable {
			return r
		}
	}
	return reports[0]
}

// sentinel asks one Sentinel for the primary.
func (c *checkup) sentinel(ctx context.Context, address string, r *Report) (primary string) {
	r.Server = "Sentinel " + address
	o := c.options(address)
	o.Username, o.Password = c.cfg.Sentinel.Username, c.cfg.Sentinel.Password
	client := redis.NewClient(o)
	defer func() { _ = client.Close() }()
	g, fault := c.meet(ctx, client, address)
	switch {
	case fault == FaultLoginRequired:
		r.Fault = FaultSentinelLoginRequired
	case fault == FaultWrongLogin || fault == FaultNoLogin:
		r.Fault = FaultSentinelWrongLogin
	case fault != "":
		r.Fault = fault
	case g.mode != "" && g.mode != modeSentinel:
		r.Fault = FaultNotSentinel
	default:
		primary, r.Fault = c.placeOf(ctx, client)
		if r.Fault == "" || r.Fault == FaultMissingRights {
			r.Missing, r.Fault = lacks(ctx, client, sentinelRights, c.cfg.Sentinel.Master, sentinelChannels)
		}
	}
	return primary
}

// placeOf is where a Sentinel says that the primary is.
func (c *checkup) placeOf(ctx context.Context, sentinel *redis.Client) (string, Fault) {
	place, err := sentinel.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", c.cfg.Sentinel.Master).StringSlice()
	switch fault := diagnose(err); {
	case fault != "":
		return "", fault
	case len(place) != 2:
		return "", FaultSentinelNoMaster
	}
	return net.JoinHostPort(place[0], place[1]), ""
}

// seeds looks for a node that knows the Cluster.
func (c *checkup) seeds(ctx context.Context) bool {
	reports := c.each(func(i int, r *Report) { c.seed(ctx, c.cfg.Addresses[i], r) })
	for _, r := range reports {
		if r.Fault == "" {
			return true
		}
	}
	first := mostTelling(reports)
	return c.fail(first.Fault, first.Server, first.Missing)
}

func (c *checkup) seed(ctx context.Context, address string, r *Report) {
	r.Server = "the node " + address
	client := redis.NewClient(c.options(address))
	defer func() { _ = client.Close() }()
	var g greeting
	if g, r.Fault = c.meet(ctx, client, address); r.Fault != "" {
		return
	}
	slots, err := client.Do(ctx, clusterRights[0].args...).Slice()
	switch fault := diagnose(err); {
	case g.mode == modeSentinel:
		r.Fault = FaultIsSentinel
	case g.mode != "" && g.mode != modeCluster, fault == FaultMissingCommand:
		r.Fault = FaultNotCluster
	case fault == FaultMissingRights:
		r.Fault, r.Missing = fault, []string{clusterRights[0].rule}
	case fault == "" && len(slots) == 0:
		r.Fault = FaultClusterDown
	default:
		r.Fault = fault
	}
}

// cluster looks at each primary, by the addresses that the nodes announce.
func (c *checkup) cluster(ctx context.Context) bool {
	universal, err := open(c.cfg)
	if err != nil {
		return c.fail(FaultUnintelligible, "this backend", nil)
	}
	client := universal.(*redis.ClusterClient)
	defer func() { _ = client.Close() }()
	var mu sync.Mutex
	var nodes []*redis.Client
	err = client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	if fault := diagnose(err); fault != "" {
		return c.fail(fault, "the Cluster", nil)
	}
	for i, node := range nodes {
		address := node.Options().Addr
		g, fault := c.meet(ctx, node, address)
		if fault != "" {
			return c.fail(fault, announced("the node", address), nil)
		}
		facts := factsOf(ctx, node, g)
		if facts.Primaries = 1; i > 0 {
			facts = c.report.Facts.merge(facts)
		}
		c.report.Facts = facts
		if !c.rights(ctx, node, announced("the node", address)) {
			return false
		}
	}
	return true
}
