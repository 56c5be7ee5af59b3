// Package exact proves that windows are exact: several enforcer processes with
// many callers each send more than a limit allows, and every full window must
// admit the limit and not one more or less. Clocks are wrong, step, and names of
// windows are late on purpose.
//
// It takes minutes, so make exact runs it, and make test does not.
package exact
