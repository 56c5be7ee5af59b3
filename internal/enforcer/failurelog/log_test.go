package failurelog

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
	"github.com/weir-dev/weir/internal/policy"
)

// bench is a Log with a clock that moves when it is told to.
type bench struct {
	*Log
	now  time.Time
	text bytes.Buffer
}

func newBench() *bench {
	b := &bench{now: time.Unix(1_796_076_000, 0)}
	handler := slog.NewTextHandler(&b.text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "hint" {
			return slog.Attr{}
		}
		return a
	}})
	b.Log = New(metrics.New(prometheus.NewRegistry()), slog.New(handler), func() time.Time { return b.now })
	return b
}

// lines are what is in the log after the message.
func (b *bench) lines() []string {
	var all []string
	for text := range strings.Lines(b.text.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(text), "failureMode applies\" ")
		all = append(all, rest)
	}
	b.text.Reset()
	return all
}

func backend(name string, store limiter.Store) *limiter.Backend {
	return &limiter.Backend{Name: policy.Name{Namespace: "shop", Name: name}, Store: store, Budget: time.Hour}
}

func snapshot(backends ...*limiter.Backend) *limiter.Snapshot {
	return &limiter.Snapshot{Set: policy.NewSet(nil), Backends: backends}
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestTenMinutesWithoutRedis is a hundred failures a second.
func TestTenMinutesWithoutRedis(t *testing.T) {
	b, redis := newBench(), backend("redis", nil)
	r := b.Observe(snapshot(redis))
	const seconds, each = 600, 100
	for range seconds * each {
		r.Failed(redis, "unreachable")
		b.now = b.now.Add(time.Second / each)
	}
	lines := b.lines()
	want(t, "lines", len(lines), seconds/10)
	want(t, "the first", lines[0], "backend=shop/redis kind=unreachable failures=1")
	want(t, "the second", lines[1], "backend=shop/redis kind=unreachable failures=1000")
}

func TestEachFailureHasALineOfItsOwn(t *testing.T) {
	b, one, two := newBench(), backend("one", nil), backend("two", nil)
	r := b.Observe(snapshot(one, nil, two, one))
	fail := func(backend *limiter.Backend, kind string, after time.Duration) {
		b.now = b.now.Add(after)
		r.Failed(backend, kind)
	}
	for _, step := range []struct {
		reason string
		do     func()
		want   []string
	}{
		{"the first failure", func() { fail(one, "timeout", 0) }, []string{"backend=shop/one kind=timeout failures=1"}},
		{"the same at once", func() { fail(one, "timeout", 0) }, nil},
		{"another kind", func() { fail(one, "loading", 0) }, []string{"backend=shop/one kind=loading failures=1"}},
		{"another backend", func() { fail(two, "timeout", 0) }, []string{"backend=shop/two kind=timeout failures=1"}},
		{"a caller that went away", func() { fail(one, limiter.KindCanceled, time.Hour) }, nil},
		{"an hour later", func() { fail(one, "timeout", 0) }, []string{"backend=shop/one kind=timeout failures=2"}},
		{"just before the interval ends", func() { fail(one, "timeout", Interval-1) }, nil},
		{"when it has ended", func() { fail(one, "timeout", 1) }, []string{"backend=shop/one kind=timeout failures=2"}},
		{"other policies with the same backend", func() { r = b.Observe(snapshot(one)); fail(one, "timeout", 0) }, nil},
		{"a backend that was away", func() { r = b.Observe(snapshot(one, two)); fail(two, "timeout", 0) }, []string{"backend=shop/two kind=timeout failures=1"}},
	} {
		step.do()
		want(t, step.reason, b.lines(), step.want)
	}
	b.Observe(snapshot())
	want(t, "remembered without backends", len(b.Log.lines), 0)
}

// broken fails with an error that quotes what no log may hold.
type broken struct{}

func (broken) Do(_ context.Context, batch []*limiter.Op) {
	for _, op := range batch {
		op.Err = fmt.Errorf("dial redis://admin:hunter2@10.0.0.7: %s: %w", op.Checks[0].Key, limiter.ErrUnreachable)
	}
}

func TestLinesHoldNoTextOfErrorsOrCallers(t *testing.T) {
	data, err := yaml.YAMLToJSON([]byte(`{metadata: {namespace: shop, name: p}, spec: {selector: {}, rules: [{name: r, limit: 1, window: 1m, key: [{type: Header, name: X-User}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.DecodePolicy(data)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := policy.Compile(p, policy.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench()
	l := limiter.New(limiter.Options{Observer: b.Log})
	l.Swap(&limiter.Snapshot{Set: policy.NewSet([]*policy.Policy{compiled}), Backends: []*limiter.Backend{backend("redis", broken{})}})
	var d limiter.Decision
	l.Decide(t.Context(), &policy.Request{Method: "GET", Path: "/secret", Header: map[string][]string{"X-User": {"bob"}}}, &d)
	want(t, "all that is written", b.text.String(), "msg=\"backend does not decide, failureMode applies\" backend=shop/redis kind=unreachable failures=1\n")
}

func TestEveryKindHasAHint(t *testing.T) {
	for _, kind := range limiter.FailureKinds() {
		if (hints[kind] == "") != (kind == limiter.KindCanceled) {
			t.Errorf("%s: hint %q", kind, hints[kind])
		}
	}
	want(t, "kinds with a hint", len(hints), len(limiter.FailureKinds())-1)
}
