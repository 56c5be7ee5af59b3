// Package bench measures Weir next to what its users would otherwise take, in
// the same run on the same machine, and fails where Weir falls short of what it
// promises.
//
// Run it with make bench, never as part of make test: its results depend on the
// machine, so what is printed are ratios beside the plain numbers.
package bench
