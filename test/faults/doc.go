// Package faults proves what callers see while Redis is in trouble. It is a
// matrix: each topology has faults, each fault is gone through under a steady load
// with failureMode Allow and with Deny, and always the same must hold:
//
//   - a decision takes no longer than its budget and a little;
//   - it is right, or it is the policy's failure mode, and never looks like both;
//   - no request is counted twice;
//   - goroutines and memory are afterwards what they were before;
//   - soon after the fault a limit of n admits exactly n again.
//
// It takes minutes, so make faults runs it, and make test does not.
package faults
