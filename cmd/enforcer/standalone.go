package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/standalone"
)

// standaloneFlags are the flags of standalone as they were typed.
type standaloneFlags struct {
	frontFlags
	policies []string
	watch    bool
	redis    string
}

func standaloneCommand() *cobra.Command {
	var f standaloneFlags
	c := &cobra.Command{
		Use:   "standalone --policies DIR|FILE --upstream URL",
		Short: "Run a limiting reverse proxy, fed from files",
		Long: `Runs a reverse proxy in front of one application and limits what passes.

Policies are read from YAML and JSON files, several documents to a file:
RateLimitPolicy, RedisBackend, Secret and ConfigMap. Every policy in them applies,
whatever its selector or domain. The files are watched: an edit is in force within
a second and drops neither a connection nor a count; while the files are broken,
the last good policies stay in force and the log says what is wrong, and where.

The admin address serves /healthz, /readyz and /metrics, and to callers on this
machine /debug/policies.`,
		Example: `  # Try it, without a Redis:
  enforcer standalone --policies policies/ --upstream http://127.0.0.1:3000 --redis embedded
  curl -i http://127.0.0.1:8080/

  # With the RedisBackends that the files hold, behind a load balancer:
  enforcer standalone --policies policies/ --upstream http://127.0.0.1:3000 \
    --listen :8080 --trusted-proxies 10.0.0.0/8`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.policies, "policies", nil, "`DIR|FILE` of policies; may be given several times (required)")
	f.addUpstream(flags)
	flags.StringVar(&f.redis, "redis", "", "`URL|embedded`: redis://[user:password@]host:port[/database] to count all policies there, or embedded for a Redis in this process; absent: the RedisBackends that policies name")
	flags.BoolVar(&f.watch, "watch", true, "take changes of the files over")
	f.addRest(flags)
	return c
}

// run serves until the command's context ends.
func (f *standaloneFlags) run(c *cobra.Command) error {
	config, err := f.config(c.ErrOrStderr())
	if err != nil {
		return err
	}
	config.Logger.Info("starting", "version", version)
	server, err := standalone.New(c.Context(), config)
	var wrong *filesource.ProblemsError
	switch {
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintln(c.ErrOrStderr(), wrong)
		return fmt.Errorf("the policies can't be enforced; problems: %d", len(wrong.Problems))
	case err != nil:
		return err
	}
	return server.Run(c.Context())
}

// config reads the flags that have a form.
func (f *standaloneFlags) config(log io.Writer) (c standalone.Config, err error) {
	if len(f.policies) == 0 {
		return c, flagError("policies", errors.New("name a directory or a file, for example --policies config/samples/quickstart"))
	}
	p, err := f.parse(log)
	if err != nil {
		return c, err
	}
	c = standalone.Config{
		Policies: f.policies, Watch: f.watch, Upstream: p.upstream, Listen: f.listen, AdminListen: f.adminListen,
		ClientAddress: p.clientAddress, DrainTimeout: f.drainTimeout, Logger: p.logger,
	}
	if f.redis != "" {
		if c.Redis, err = standalone.ParseRedis(f.redis); err != nil {
			return c, flagError("redis", err)
		}
	}
	return c, nil
}
