// Package peers measures Weir's decisions next to other limiters for Go on the
// same Redis, in turns.
//
// It is a module of its own, so that nobody who builds Weir fetches the others.
package peers
