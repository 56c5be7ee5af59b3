package redis

import (
	"context"
	"fmt"
	"strconv"
)

// AwaitSettled waits until the running Sentinels know each other and agree on a
// primary, and all other running servers follow it.
func (g *Sentinels) AwaitSettled() {
	g.t.Helper()
	await(g.t, "the Sentinels do not agree", func(ctx context.Context) error {
		var agreed *Server
		for _, s := range g.sentinels {
			if !s.IsRunning() {
				continue
			}
			primary, err := g.primaryOf(ctx, s)
			if err != nil {
				return err
			}
			if agreed != nil && primary != agreed {
				return fmt.Errorf("%s and %s are both called the primary", agreed.Addr(), primary.Addr())
			}
			if err := g.knows(ctx, s); err != nil {
				return err
			}
			agreed = primary
		}
		if agreed == nil {
			return fmt.Errorf("no Sentinel is running")
		}
		return g.follow(ctx, agreed)
	})
}

// knows returns what a Sentinel does not know of the group yet.
func (g *Sentinels) knows(ctx context.Context, sentinel *Server) error {
	reply, err := sentinel.client.Do(ctx, "SENTINEL", "MASTER", MasterName).Result()
	if err != nil {
		return err
	}
	state := pairs(reply)
	want := map[string]string{
		"flags": "master", "num-slaves": strconv.Itoa(replicas), "num-other-sentinels": strconv.Itoa(sentinels - 1),
	}
	for name, value := range want {
		if state[name] != value {
			return fmt.Errorf("sentinel %s says %s=%s, want %s", sentinel.Addr(), name, state[name], value)
		}
	}
	return nil
}

func pairs(reply any) map[string]string {
	fields := map[string]string{}
	list, _ := reply.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		fields[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return fields
}

func (g *Sentinels) awaitReplicas(primary *Server) {
	g.t.Helper()
	await(g.t, "the replicas do not follow", func(ctx context.Context) error { return g.follow(ctx, primary) })
}

// AwaitReplicated waits until every running replica has all that the primary had
// when this began: a failover loses what only the primary has.
func (g *Sentinels) AwaitReplicated() {
	g.t.Helper()
	primary := g.Primary()
	info, err := primary.Info(context.Background(), "replication")
	if err != nil {
		g.t.Fatal(err)
	}
	written := offset(info["master_repl_offset"])
	await(g.t, "the replicas lag behind", func(ctx context.Context) error {
		for _, s := range g.data {
			if s == primary || !s.IsRunning() {
				continue
			}
			info, err := s.Info(ctx, "replication")
			if err != nil {
				return err
			}
			if has := offset(info["slave_repl_offset"]); has < written {
				return fmt.Errorf("%s has %d of %d bytes", s.Addr(), has, written)
			}
		}
		return nil
	})
}

// offset is a place in what a primary sends its replicas, in bytes, or -1.
func offset(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// follow returns who does not follow the primary yet.
func (g *Sentinels) follow(ctx context.Context, primary *Server) error {
	for _, s := range g.data {
		if s == primary {
			if err := hasRole(ctx, s, map[string]string{"role": "master"}); err != nil {
				return err
			}
		} else if s.IsRunning() {
			if err := isReplica(ctx, s, primary); err != nil {
				return err
			}
		}
	}
	return nil
}

func isReplica(ctx context.Context, s, primary *Server) error {
	return hasRole(ctx, s, map[string]string{
		"role": "slave", "master_port": primary.portText(), "master_link_status": "up", "master_sync_in_progress": "0",
	})
}

func hasRole(ctx context.Context, s *Server, want map[string]string) error {
	info, err := s.Info(ctx, "replication")
	if err != nil {
		return err
	}
	for name, value := range want {
		if info[name] != value {
			return fmt.Errorf("%s says %s=%s, want %s", s.Addr(), name, info[name], value)
		}
	}
	return nil
}
