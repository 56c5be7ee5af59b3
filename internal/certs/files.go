package certs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// lookEvery is how often files and Secrets are looked at.
const lookEvery = 10 * time.Second

// Files keeps a Holder up to date with files that somebody else writes.
type Files struct {
	Holder
	// Certificate and Key are paths. Authorities is one, too, and may be empty.
	Certificate, Key, Authorities string
	Logger                        *slog.Logger
}

// Load reads the files.
func (f *Files) Load() error {
	var texts [3][]byte
	for i, path := range []string{f.Certificate, f.Key, f.Authorities} {
		if path == "" {
			continue
		}
		var err error
		if texts[i], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	if err := f.set(texts[0], texts[1], texts[2]); err != nil {
		return fmt.Errorf("%s: %w", f.Certificate, err)
	}
	return nil
}

// Run reads the files anew from time to time, until ctx ends. What was good stays
// when they are not.
func (f *Files) Run(ctx context.Context) {
	repeat(ctx, lookEvery, f.Logger, "the certificate's files can't be read, what was read before is served", f.Load)
}

// repeat does something time and again, and logs each error once.
func repeat(ctx context.Context, every time.Duration, logger *slog.Logger, failed string, do func() error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for {
		text := ""
		if err := do(); err != nil {
			text = err.Error()
		}
		if text != "" && text != told && ctx.Err() == nil {
			//nolint:sloglint // the callers' messages are static
			logger.Error(failed, "error", text)
		}
		told = text
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
