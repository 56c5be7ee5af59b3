package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/standalone"
)

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE…",
		Short: "Say what is wrong with files of policies",
		Long: `Checks files and directories of RateLimitPolicy, RedisBackend, Secret and ConfigMap
documents, all together, as enforcer standalone takes them. Every problem is
printed as

  FILE:LINE: FIELD: what is wrong and how to mend it

and the exit code is 1 if there is one. Warnings say so and change nothing about
the exit code. "-" reads the standard input.

Where the files hold no RedisBackend at all, one that a policy names is taken to be
elsewhere, and there is a warning only.`,
		Example: `  enforcer validate config/samples/quickstart
  kubectl get ratelimitpolicies.weir.dev storefront -o yaml | enforcer validate -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name at least one file, for example: enforcer validate policy.yaml")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return validate(c.OutOrStdout(), c.InOrStdin(), args) },
	}
}

func validate(out io.Writer, stdin io.Reader, paths []string) error {
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
