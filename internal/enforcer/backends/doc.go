// Package backends turns a RedisBackend, with what it refers to, into a store that
// policies share.
//
// It decides what absent fields mean and which policies can share connections: those
// whose targets are equal in all that matters to a connection. Where Secrets come
// from, and who may use a backend, is not its business.
//
// What always holds:
//
//   - A target that stays as it was keeps its connections.
//   - A store is closed when nothing uses it any more, decisions under way included.
//   - Certificates are always verified.
package backends
