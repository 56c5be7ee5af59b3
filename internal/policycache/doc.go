// Package policycache holds the policies and backends of a cluster, and tells each
// enforcer which of them concern it.
//
// Controllers put in what they found valid; Views come out. A View is complete and
// never changes. Its version is a digest of all that is in it, so that two replicas
// that know the same have the same versions.
//
// What always holds:
//
//   - Before Synced there is no View: an enforcer never sees a part of a cluster.
//   - A View holds nothing of a namespace that its Audience may not see, and the
//     login of the Audience's own namespace only.
//   - A change wakes those whose View may be another one, and nobody else.
//
// The package is pure: it knows no Kubernetes client and no transport.
package policycache
