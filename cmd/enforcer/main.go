// Command enforcer limits requests. It never decides anything itself: it reads
// flags, puts the parts together and ends them in order.
//
//	enforcer standalone   a limiting reverse proxy, fed from files
//	enforcer sidecar      the same, fed by the manager
//	enforcer validate     says what is wrong with files
//	enforcer version      says which version this is
//
// It exits with 0 when it was asked to end, with 1 when something is wrong with
// files or the surroundings, and with 2 when something is wrong with its flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set when the binary is built.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run carries out a command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "enforcer: %v\n", err)
		return 2
	case !errors.Is(err, errSaid):
		_, _ = fmt.Fprintf(stderr, "enforcer: %v\n", err)
	}
	return 1
}

// errSaid ends a command that has said what is wrong.
var errSaid = errors.New("there are problems")

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// flagError is a mistake in the value of a flag.
func flagError(flag string, err error) error {
	return usageError{fmt.Errorf("--%s: %w", flag, err)}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "enforcer",
		Short: "Limit request rates as RateLimitPolicies say",
		Long: `enforcer counts requests against RateLimitPolicies, in Redis, and answers 429 to
whoever is over.`,
		Example: `  # Put limits in front of an application on this machine, without a Redis:
  enforcer standalone --policies policies/ --upstream http://127.0.0.1:3000 --redis embedded

  # Say what is wrong with files of policies:
  enforcer validate policies/`,
		Args:          noArguments,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(standaloneCommand(), sidecarCommand(), validateCommand(), versionCommand())
	return root
}

// noArguments refuses arguments, of which a command that does not exist is one.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%q is not known here; see %s --help", args[0], c.CommandPath())}
	}
	return nil
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  enforcer version",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), version)
			return err
		},
	}
}
