package filesource

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

const (
	// pollEvery is how often the files are looked at. That is a few system calls,
	// and works alike for editors, mounted ConfigMaps and network file systems,
	// some of which tell nobody that a file has changed.
	pollEvery = 250 * time.Millisecond
	// settleFor is how long files must stay as they are before they are taken, so
	// that what an editor has half written is not. Files that don't stay still are
	// taken after maxSettle looks.
	settleFor = 100 * time.Millisecond
	maxSettle = 4
	// racy is the age below which a file's time does not prove that it is the same.
	racy = 2 * time.Second
)

// Watcher tells when files have changed.
type Watcher struct {
	look  func(stamp string) sight
	known digest
	stamp string // of what is known; empty where it proves nothing
}

type digest [sha256.Size]byte

// sight is what one look at the files saw. Its digest covers the error, too.
type sight struct {
	files []File
	err   error
	sum   digest
	stamp string
}

// NewWatcher returns a watcher of what Read reads. files is what is known: Run
// tells of what differs.
func NewWatcher(paths []string, files []File) *Watcher {
	return &Watcher{
		look:  func(stamp string) sight { return lookAt(paths, stamp, time.Now()) },
		known: digestOf(files, nil),
	}
}

// lookAt reads the files, unless their stamp is still the same: the sight has the
// same stamp and no files then.
func lookAt(paths []string, stamp string, now time.Time) sight {
	found, err := scan(paths)
	if err != nil {
		return sight{err: err, sum: digestOf(nil, err)}
	}
	if stamp != "" && found.stamp == stamp {
		return sight{stamp: stamp}
	}
	files := found.read()
	s := sight{files: files, sum: digestOf(files, nil)}
	if now.Sub(found.newest) > racy {
		s.stamp = found.stamp
	}
	return s
}

// Run calls changed after each change, one call at a time, until ctx ends. Where
// a path can't be reached there is an error and no files.
func (w *Watcher) Run(ctx context.Context, changed func([]File, error)) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		if s, ok := w.settled(ctx); ok {
			w.known, w.stamp = s.sum, s.stamp
			changed(s.files, s.err)
		}
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

// settled looks at the files. It returns what they are once they have stayed so
// for a while, or false when they are as they were known.
func (w *Watcher) settled(ctx context.Context) (sight, bool) {
	s := w.look(w.stamp)
	for range maxSettle {
		if w.stamp != "" && s.stamp == w.stamp {
			return sight{}, false
		}
		if s.sum == w.known {
			w.stamp = s.stamp
			return sight{}, false
		}
		if !wait(ctx, settleFor) {
			return sight{}, false
		}
		before := s.sum
		if s = w.look(""); s.sum == before {
			break
		}
	}
	return s, s.sum != w.known
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// digestOf is equal for files that mean the same.
func digestOf(files []File, err error) digest {
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, int64(len(s)))
		h.Write([]byte(s))
	}
	for _, f := range files {
		text(f.Name)
		text(f.unreadable)
		text(string(f.Data))
	}
	if err != nil {
		text(err.Error())
	}
	return digest(h.Sum(nil))
}
