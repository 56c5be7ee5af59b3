// Package distribution hands each enforcer the policies that concern it, over one
// gRPC stream, and learns what each has in force.
//
// What always holds:
//
//   - Who an enforcer is comes from its credential, and what it may see from that.
//     Nothing that it says widens it.
//   - A set takes effect as a whole: no client ever applies a part of one.
//   - A client keeps the last good set, whatever happens to its stream.
//   - An enforcer that is slow costs only itself: it is sent what is newest when it
//     has answered.
//   - Credentials are sent to those whose policies need them, and appear in no log
//     and no error.
//
// The schema is in streampb.
package distribution
