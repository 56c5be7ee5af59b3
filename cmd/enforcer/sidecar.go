package main

import (
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/enforcer/sidecar"
)

// sidecarFlags are the flags of sidecar as they were typed.
type sidecarFlags struct {
	frontFlags
	manager    string
	serverName string
	tokenFile  string
	caFile     string
	patience   time.Duration
}

func sidecarCommand() *cobra.Command {
	var f sidecarFlags
	c := &cobra.Command{
		Use:   "sidecar --manager ADDR --upstream URL",
		Short: "Run a limiting reverse proxy, fed by Weir's manager",
		Long: `Runs a reverse proxy in front of the application of its pod, and limits what
passes as the RateLimitPolicies of its namespace say whose selector matches the pod.

The manager knows the pod by its service account token. Before the first policies
come all requests pass; afterwards the last good ones stay in force, whatever
becomes of the manager.

The admin address serves /healthz, /readyz and /metrics, and to callers on this
machine /debug/policies.`,
		Example: `  # In a pod, beside an application at port 8080:
  enforcer sidecar --manager weir-manager.weir-system.svc:9443 \
    --upstream http://127.0.0.1:8080 --listen :16001 --admin-listen :16090`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.manager, "manager", "", "`ADDR` of the manager's stream, host:port (required)")
	f.addUpstream(flags)
	flags.StringVar(&f.tokenFile, "token-file", "/var/run/secrets/weir.dev/token", "`FILE` with a service account token of audience weir.dev/stream")
	flags.StringVar(&f.caFile, "ca-file", "/var/run/secrets/weir.dev/ca.crt", "`FILE` with the authorities of the manager's certificate, in PEM form; once connected, those that the manager names count as well")
	flags.StringVar(&f.serverName, "server-name", "", "`NAME` in the manager's certificate; absent: the host of --manager")
	flags.DurationVar(&f.patience, "first-policies-timeout", 10*time.Second, "`TIME` to wait for the first policies before being ready without them")
	f.addRest(flags)
	return c
}

// run serves until the command's context ends.
func (f *sidecarFlags) run(c *cobra.Command) error {
	config, err := f.config(c.ErrOrStderr())
	if err != nil {
		return err
	}
	config.Logger.Info("starting", "version", version)
	server, err := sidecar.New(c.Context(), config)
	if err != nil {
		return err
	}
	return server.Run(c.Context())
}

// config reads the flags that have a form.
func (f *sidecarFlags) config(log io.Writer) (c sidecar.Config, err error) {
	if err := checkAddress(f.manager); err != nil {
		return c, flagError("manager", errors.New("write the manager's address as host:port, for example weir-manager.weir-system.svc:9443"))
	}
	p, err := f.parse(log)
	if err != nil {
		return c, err
	}
	return sidecar.Config{
		Manager: f.manager, ServerName: f.serverName, TokenFile: f.tokenFile, CAFile: f.caFile, Patience: f.patience, Build: version,
		Upstream: p.upstream, Listen: f.listen, AdminListen: f.adminListen, ClientAddress: p.clientAddress,
		DrainTimeout: f.drainTimeout, Logger: p.logger,
	}, nil
}
