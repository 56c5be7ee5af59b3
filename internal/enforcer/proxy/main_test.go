package proxy_test

import (
	"testing"

	"go.uber.org/goleak"
)

// After net/http has refused a request it lingers for half a second, so that the
// client can read the answer; that is no leak.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}
