// Package standalone runs an enforcer without a cluster: it turns files into what
// is enforced, keeps a Limiter up to date while they change, and serves a proxy
// and the admin pages.
//
//	files ─filesource─► objects ─resolve─► policies and targets ─enforcement─► Limiter
//
// It decides which backend a policy counts in and whether it may; how requests
// are decided and answered is not its business.
//
// What always holds:
//
//   - A set of files is taken as a whole or not at all. While something is wrong
//     with it, the last good set stays in force; so it does while the files are
//     out of reach.
//   - Passwords and keys are in no log line, message, page or metric.
package standalone
