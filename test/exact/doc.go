// Package exact proves that windows are exact: several enforcer processes with
// many callers each send more than a limit allows, and every full window must
// admit the limit and not one more or less, on a server, behind Sentinels and on a
// Cluster. Clocks are wrong, step, and names of windows are late on purpose;
// primaries are changed and enforcers killed meanwhile.
//
// It takes minutes, so make exact runs it, and make test does not. EXACT_WINDOWS
// is how many windows the longest tests last, 20 unless set.
package exact
