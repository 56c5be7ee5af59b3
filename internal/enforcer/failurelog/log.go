// Package failurelog tells an operator in the log that backends do not answer: one
// line in ten seconds for each kind of failure of each backend, however many
// requests meet it. How many they were is in the line, and in the metrics.
//
// A line names the backend and the kind, and what to look at. It never holds an
// error's text, which may quote an address, a key or what a caller sent.
package failurelog

import (
	"log/slog"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/policy"
)

// Interval is how long a kind of failure of one backend stays silent after a line.
const Interval = 10 * time.Second

// Log passes on all that a Limiter tells to another observer, and writes about the
// failures.
type Log struct {
	next   limiter.Observer
	logger *slog.Logger
	now    func() time.Time

	mu    sync.Mutex
	lines map[failure]*line
}

// failure is what has a line of its own. There are as many as there are kinds for
// each backend in force.
type failure struct {
	backend policy.Name
	kind    string
}

// line is what was written about a failure.
type line struct {
	last  time.Time // of writing
	since int64     // failures after that
}

var _ limiter.Observer = (*Log)(nil)

// New returns an observer that goes between a Limiter and next, and takes the time
// from now.
func New(next limiter.Observer, logger *slog.Logger, now func() time.Time) *Log {
	return &Log{next: next, logger: logger, now: now, lines: map[failure]*line{}}
}

// Observe implements limiter.Observer. What was written lately about a backend that
// stays is remembered.
func (l *Log) Observe(s *limiter.Snapshot) limiter.Recorder {
	l.keep(s.Backends)
	return &recorder{l.next.Observe(s), l}
}

// keep forgets all backends but these.
func (l *Log) keep(backends []*limiter.Backend) {
	there := map[policy.Name]bool{}
	for _, b := range backends {
		if b != nil {
			there[b.Name] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.lines {
		if !there[f.backend] {
			delete(l.lines, f)
		}
	}
}

type recorder struct {
	limiter.Recorder
	log *Log
}

// Failed implements limiter.Recorder.
func (r *recorder) Failed(b *limiter.Backend, kind string) {
	r.Recorder.Failed(b, kind)
	if kind != limiter.KindCanceled { // the caller's doing, not the backend's
		r.log.failed(failure{b.Name, kind})
	}
}

func (l *Log) failed(f failure) {
	if failures := l.due(f); failures > 0 {
		l.logger.Warn("backend does not decide, failureMode applies",
			"backend", f.backend.String(), "kind", f.kind, "failures", failures, "hint", hints[f.kind])
	}
}

// due counts a failure, and returns how many a line is to tell of; 0 if there is
// none to write yet.
func (l *Log) due(f failure) int64 {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	written := l.lines[f]
	if written == nil {
		l.lines[f] = &line{last: now}
		return 1
	}
	written.since++
	if now.Sub(written.last) < Interval {
		return 0
	}
	failures := written.since
	*written = line{last: now}
	return failures
}
