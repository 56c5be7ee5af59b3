package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/enforcer/standalone"
)

// errInvalid ends the process with 1 after the problems were printed.
var errInvalid = errors.New("there are problems")

func validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE…",
		Short: "Say what is wrong with files of policies",
		Long: `Checks files and folders of RateLimitPolicy, RedisBackend, Secret and ConfigMap
documents, together, as enforcer standalone would take them. Every problem is
printed as

  FILE:LINE: FIELD: what is wrong and how to mend it

and the exit code is 1 if there is one. "-" reads the standard input.`,
		Example: `  enforcer validate config/samples/quickstart
  kubectl get ratelimitpolicies.weir.dev -o yaml policy | enforcer validate -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name at least one file, for example: enforcer validate policy.yaml")}
			}
			return nil
		},
		RunE: validate,
	}
}

func validate(c *cobra.Command, paths []string) error {
	objects, problems := standalone.Load(paths, c.InOrStdin())
	if len(objects.Backends) > 0 && len(problems.Errors()) == 0 {
		_, unresolved := objects.Resolve()
		problems = append(problems, unresolved...)
	}
	for _, problem := range problems {
		if _, err := fmt.Fprintln(c.OutOrStdout(), problem); err != nil {
			return err
		}
	}
	if len(problems.Errors()) > 0 {
		return errInvalid
	}
	_, err := fmt.Fprintf(c.OutOrStdout(), "%d policies, %d backends: ok\n", len(objects.Policies), len(objects.Backends))
	return err
}
