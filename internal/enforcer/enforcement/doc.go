// Package enforcement puts policies in force: it compiles them, opens the stores in
// which they count, and hands both to a Limiter as one.
//
// Where policies come from, files or a stream, is not its business.
//
// What always holds:
//
//   - A set of policies is taken as a whole or not at all. A set that can't be taken
//     leaves the one before in force.
//   - No counter is touched by a change of policies.
package enforcement
