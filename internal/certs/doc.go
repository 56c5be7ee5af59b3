// Package certs holds the certificate with which a manager serves enforcers and the
// API server, and the authorities by which they know it.
//
// Where nobody else makes certificates, a manager makes its own and keeps them in a
// Secret that all replicas read. The authority changes without a gap:
//
//   - The next authority is published a day before it signs anything.
//   - It is certified by the one before it, too, and that certificate is served with
//     the leaf: who has missed the change goes on with the authority that it knows.
//   - The one before is trusted until it expires, half its life later.
package certs
