// Command enforcer limits requests. It never decides anything itself: it reads
// flags, puts the parts together and ends them in order.
//
//	enforcer standalone   a limiting reverse proxy, fed from files
//	enforcer validate     says what is wrong with files
package main

import (
	"context"
	"errors"
	"fmt"
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
	err := command().ExecuteContext(ctx)
	stop()
	var usage usageError
	switch {
	case err == nil:
	case errors.Is(err, errInvalid):
		os.Exit(1)
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "enforcer: %v\n", err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "enforcer: %v\n", err)
		os.Exit(1)
	}
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "enforcer",
		Short: "Limit request rates as RateLimitPolicies say",
		Long: `enforcer counts requests against RateLimitPolicies in Redis and answers 429
to whoever is over.

  enforcer standalone   a limiting reverse proxy, fed from files, no cluster needed
  enforcer validate     says what is wrong with files of policies`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see enforcer %s --help", err, c.Name())}
	})
	root.AddCommand(standaloneCommand(), validateCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), version)
			return err
		},
	}
}
