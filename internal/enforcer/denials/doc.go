// Package denials keeps counters that are over from costing a trip to their store
// for every request: who is denied is told so from memory.
//
// It decides when what is known of a counter is enough to deny. It never allows by
// itself, and it never denies what the store would allow for longer than a second:
// what is known is asked for anew each second while it is used, and is good for one
// window, one limit and one cost at a time.
//
// What always holds:
//
//   - Attempts that were denied from memory reach the store, in bulk and at most
//     once a second, so counters show them. Only a report whose fate is unknown is
//     not sent again.
//   - A counter that an operator has deleted admits again within a second.
//   - The table is bounded; what does not fit costs a trip, as without it. So are
//     the reports of what had to make room: beyond that, attempts are not shown.
package denials
