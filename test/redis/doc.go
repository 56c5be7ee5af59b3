// Package redis starts real Redis servers for tests, on loopback, breaks them on
// purpose, and stops them with the test, whatever happens: a server dies with its
// test, and with the test's process at the latest.
//
// # One server
//
// [Start] runs one, [StartTLS] one with [Certificates] of the test's own, and
// [User] writes the arguments for a user with less than all rights:
//
//	server := redis.Start(t, redis.User("weir", "secret", "~rl:*", "+@all")...)
//	store := newStore(server.Addr())
//
// [Server.Client] looks into it past TLS, passwords and faults. [Server.Stop] and
// [Server.Run] restart it at the same address, [Server.Pause] leaves it hanging
// with its connections open, and [Server.RestartLoading] has it load for a while.
//
// # Many servers
//
// [StartSentinels] runs a primary, two replicas and three Sentinels;
// [Sentinels.Failover] moves the primary while the old one is well, and
// [Sentinels.KillPrimary] while it is dead. [StartCluster] runs a Redis Cluster of
// any size, whose slots [Cluster.MoveSlots] moves under traffic and whose masters
// change by [Cluster.FailOver] and [Cluster.KillMaster]. Every method returns when
// all servers agree again; those named Begin leave the servers in the middle.
//
// # The way to a server
//
// A [Proxy] in front of a server refuses, swallows, delays or cuts what goes
// through, and tells [Proxy.Watch] what reached the server:
//
//	proxy := redis.NewProxy(t, server.Addr())
//	store := newStore(proxy.Addr())
//	proxy.SwallowReplies()
//	…
//	proxy.Pass()
//
// Tests may run in parallel, also in several processes: no two servers are given
// the same port.
package redis
