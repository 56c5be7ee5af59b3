// Package sidecar is an enforcer in front of one application, fed by a manager's
// stream.
//
// What always holds:
//
//   - Before the first set all requests pass; afterwards the last good set is in
//     force, whatever becomes of the manager.
//   - A set that can't be enforced as a whole changes nothing.
//   - It is ready with the first set, or when it has waited long enough, and stays
//     ready for want of a manager or a Redis.
package sidecar
