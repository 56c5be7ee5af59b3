// Package schema judges objects as the Kubernetes API server would, from the
// generated CRDs alone and without a server.
//
// It never decides what a good spec is: that is said in api/v1alpha1 for the
// server and in internal/policy for everything else, and the tests of this package
// hold the two to the same answer, on one table of specs and on random ones. They
// also hold every sample to both.
//
// What always holds: the steps and their order are those of the API server for a
// create with strict field validation, as kubectl asks for, with the same
// libraries and the same budgets for CEL.
package schema
