// Package proxy stands in front of one application: it asks the limiter about
// each request, answers those that are refused, and passes the others on.
//
// What always holds:
//
//   - The application is sent a request only after a decision, one decision for
//     each, and receives the target, the Host and the body as the client sent
//     them, byte for byte. What cannot be passed on so is answered 400 and neither
//     decided nor passed on.
//   - The decision reads the request before any field is removed, so a client
//     cannot change who is counted by naming a field in Connection.
//   - Nothing tunnels past the decisions: WebSocket is the only upgrade, and
//     CONNECT is refused.
//   - No timeout cuts a request, an answer or a stream that has begun; only
//     header fields that do not arrive and idle connections are cut.
//
// The package decides nothing about limits, and writes no log line for a request.
// It is tested over sockets, so that the engine under it, net/http today, can be
// replaced.
package proxy
