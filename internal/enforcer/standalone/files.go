package standalone

import (
	"context"
	"errors"
	"log/slog"

	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/enforcer/enforcement"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
)

// files keeps an Enforcement up to date with files.
type files struct {
	paths    []string
	override *backends.Target
	logger   *slog.Logger
	metrics  *metrics.Metrics
	enforced *enforcement.Enforcement
	warned   map[string]bool
}

// take puts files in force, or says what is wrong with them and changes nothing.
func (f *files) take(read []filesource.File) error {
	objects, problems := filesource.Parse(read)
	targets, unresolved := f.targets(objects)
	if err := append(problems, unresolved...).Err(); err != nil {
		return err
	}
	policies := make([]enforcement.Policy, len(targets))
	for i, p := range objects.Policies {
		policies[i] = enforcement.Policy{RateLimitPolicy: p.RateLimitPolicy, Target: targets[i], Source: p.Place()}
	}
	err := f.enforced.Take(policies)
	if wrong := (*enforcement.CompileError)(nil); errors.As(err, &wrong) {
		return filesource.Problems{objects.Policies[wrong.Index].At("", wrong.Error())}.Err()
	} else if err != nil {
		return err
	}
	f.warn(objects.Warnings)
	return nil
}

// targets finds the target of each policy.
func (f *files) targets(objects *filesource.Objects) ([]*backends.Target, filesource.Problems) {
	if f.override == nil {
		return resolve(objects)
	}
	targets := make([]*backends.Target, len(objects.Policies))
	for i := range targets {
		targets[i] = f.override
	}
	return targets, nil
}

// warn logs what is odd, each once.
func (f *files) warn(warnings filesource.Problems) {
	for _, w := range warnings {
		if !f.warned[w.String()] {
			f.warned[w.String()] = true
			f.logger.Warn("policies look odd", attributes(filesource.Problems{w}.Err())...)
		}
	}
}

// follow takes each change of the files over, until ctx ends.
func (f *files) follow(ctx context.Context, read []filesource.File) {
	filesource.NewWatcher(f.paths, read).Run(ctx, func(read []filesource.File, err error) {
		if err != nil {
			f.metrics.Reloaded(false)
			f.logger.Warn("policies are out of reach, the last good set stays in force", "error", err)
			return
		}
		if err := f.take(read); err != nil {
			f.metrics.Reloaded(false)
			f.logger.Error("policies are broken, the last good set stays in force", attributes(err)...)
			return
		}
		f.metrics.Reloaded(true)
		f.logger.Info("policies are in force", f.enforced.Summary()...)
	})
}

// attributes tell the first problem by its parts, and all of them in one value.
func attributes(err error) []any {
	var wrong *filesource.ProblemsError
	if !errors.As(err, &wrong) {
		return []any{"error", err}
	}
	const most = 20
	problems, first := wrong.Problems, wrong.Problems[0]
	attrs := []any{"file", first.File, "line", first.Line, "field", first.Field, "problem", first.Message}
	if more := problems[1:]; len(more) > 0 {
		attrs = append(attrs, "problems", len(problems), "others", more[:min(len(more), most)].String())
	}
	return attrs
}
