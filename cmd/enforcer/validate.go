package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
	"github.com/weir-dev/weir/internal/enforcer/standalone"
)

// connecting says whether to connect to what files name.
type connecting struct {
	wanted bool
	within time.Duration
}

func validateCommand() *cobra.Command {
	var connect connecting
	c := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Say what is wrong with files of policies",
		Long: `Checks files and directories of RateLimitPolicy, RedisBackend, Secret and ConfigMap
documents, all together, as enforcer standalone takes them. Every problem is
printed as

  FILE:LINE: FIELD: what is wrong and how to mend it

and the exit code is 1 if there is one. Warnings say so and change nothing about
the exit code. "-" reads the standard input.

Where the files hold no RedisBackend at all, one that a policy names is taken to be
elsewhere, and there is a warning only.

With --connect, and if the files are in order, every RedisBackend in them is tried
with each of its logins, those of namespaceCredentials too: TLS, Sentinels and nodes,
user and password, each right of the user. A counter of the check's own is counted,
under the backend's prefix, and is gone after ten seconds. For each login there is a
line: ok and what is known of the servers, or what is wrong and how to mend it.`,
		Example: `  enforcer validate config/samples/quickstart
  kubectl get ratelimitpolicies.weir.dev storefront -o yaml | enforcer validate -
  enforcer validate --connect backend.yaml secret.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name at least one file, for example: enforcer validate policy.yaml")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if connect.within <= 0 {
				return flagError("connect-timeout", errors.New("write a duration such as 15s"))
			}
			return validate(c.Context(), c.OutOrStdout(), c.InOrStdin(), args, connect)
		},
	}
	c.Flags().BoolVar(&connect.wanted, "connect", false, "try every RedisBackend of the files")
	c.Flags().DurationVar(&connect.within, "connect-timeout", 15*time.Second, "how long trying one may take")
	return c
}

func validate(ctx context.Context, out io.Writer, stdin io.Reader, paths []string, connect connecting) error {
	files, err := readAll(stdin, paths)
	if err != nil {
		return err
	}
	objects, problems := filesource.Parse(files)
	warnings := objects.Warnings
	if unresolved := standalone.Check(objects); len(objects.Backends) > 0 {
		problems = append(problems, unresolved...)
	} else {
		warnings = append(warnings, unresolved...)
	}
	var text []byte
	for _, p := range problems {
		text = fmt.Appendln(text, p)
	}
	for _, w := range warnings {
		w.Message = "warning: " + w.Message
		text = fmt.Appendln(text, w)
	}
	if len(problems) == 0 {
		text = fmt.Appendf(text, "%s, %s: ok\n", count(len(objects.Policies), "policy", "policies"), count(len(objects.Backends), "backend", "backends"))
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	if len(problems) > 0 {
		return errSaid
	}
	if connect.wanted {
		return tryBackends(ctx, out, objects, connect.within)
	}
	return nil
}

// tryBackends connects with all logins at the same time, and prints a line for
// each, in the order of names.
func tryBackends(ctx context.Context, out io.Writer, objects *filesource.Objects, within time.Duration) error {
	if len(objects.Backends) == 0 {
		return errors.New("--connect: the files hold no RedisBackend to connect to; name its file too")
	}
	logins, problems := standalone.Logins(objects)
	reports := make([]redisstore.Report, len(logins))
	var group sync.WaitGroup
	for i := range logins {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			reports[i] = logins[i].Check(ctx)
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return errors.New("interrupted before all backends were tried")
	}
	var text []byte
	for i, login := range logins {
		name := "RedisBackend " + login.Backend.String()
		if login.Secret != "" {
			name += " with Secret " + login.Secret
		}
		if report := reports[i]; report.Fault == "" {
			text = fmt.Appendf(text, "%s: ok: %s\n", name, report.Message())
		} else {
			problems = append(problems, login.Source.At("", fmt.Sprintf("%s: %s: %s", name, report.Fault, report.Message())))
		}
	}
	for _, p := range problems {
		text = fmt.Appendln(text, p)
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	if len(problems) > 0 {
		return errSaid
	}
	return nil
}

// count writes a number of things.
func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", several)
}

func readAll(stdin io.Reader, paths []string) ([]filesource.File, error) {
	var all []filesource.File
	for _, path := range paths {
		if path == "-" {
			file, err := filesource.ReadStream("stdin", stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, file)
			continue
		}
		files, err := readPath(path)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// readPath reads what standalone reads, and pipes, which a shell's <(command) is.
func readPath(path string) ([]filesource.File, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) == 0 {
		return filesource.Read(path)
	}
	pipe, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pipe.Close() }()
	file, err := filesource.ReadStream(path, pipe)
	return []filesource.File{file}, err
}
