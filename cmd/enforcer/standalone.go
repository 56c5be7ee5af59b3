package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/limiter"
	"github.com/weir-dev/weir/internal/enforcer/memstore"
	"github.com/weir-dev/weir/internal/enforcer/metrics"
	"github.com/weir-dev/weir/internal/enforcer/proxy"
	"github.com/weir-dev/weir/internal/enforcer/standalone"
	"github.com/weir-dev/weir/internal/policy"
)

// options are the flags of standalone.
type options struct {
	policies       []string
	upstream       string
	listen         string
	adminListen    string
	redis          string
	trustedProxies []string
	logLevel       string
	logFormat      string
	drainTimeout   time.Duration
}

func standaloneCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "standalone --policies DIR|FILE --upstream URL",
		Short: "Run a limiting reverse proxy, fed from files",
		Long: `Runs a reverse proxy in front of one application and limits what passes.

Policies are read from YAML files, several documents to a file: RateLimitPolicy,
RedisBackend, Secret and ConfigMap. Every policy in them applies, whatever its
selector or domain. The files are watched: an edit is in force within a second and
drops neither a connection nor a count, and while the files are broken the last
good policies stay in force.

The admin address serves /healthz, /readyz and /metrics, and to callers on this
machine /debug/policies.`,
		Example: `  # Try it without a Redis:
  enforcer standalone --policies policies/ --upstream http://127.0.0.1:3000 --redis embedded

  # With the RedisBackends that the files name, behind a load balancer:
  enforcer standalone --policies policies/ --upstream http://127.0.0.1:3000 \
    --listen :8080 --trusted-proxies 10.0.0.0/8`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runStandalone(c.Context(), o) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.policies, "policies", nil, "file or folder of policies; may be given several times (required)")
	f.StringVar(&o.upstream, "upstream", "", "address of the application, such as http://127.0.0.1:3000 (required)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to serve at")
	f.StringVar(&o.adminListen, "admin-listen", "127.0.0.1:8090", "address for probes and metrics")
	f.StringVar(&o.redis, "redis", "", "redis://[user:password@]host:port[/database] for all policies, or embedded for a Redis in this process; default: the policies' own")
	f.StringSliceVar(&o.trustedProxies, "trusted-proxies", nil, "CIDRs of proxies whose X-Forwarded-For is believed, for policies without clientAddress")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.DurationVar(&o.drainTimeout, "drain-timeout", 30*time.Second, "how long requests under way may take after a signal to end")
	return c
}

// runStandalone puts the parts together and serves until the context ends.
func runStandalone(ctx context.Context, o options) error {
	logger, err := newLogger(o)
	if err != nil {
		return err
	}
	slog.SetDefault(logger)
	upstream, address, err := o.check()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := metrics.New(registry)
	l := limiter.New(limiter.Options{Observer: m, Fallback: memstore.New(time.Now, 0)})
	enforcement, err := standalone.New(standalone.Options{Paths: o.policies, Redis: o.redis, ClientAddress: address, Logger: logger, Metrics: m}, l)
	if err != nil {
		return usageError{err}
	}
	defer enforcement.Close()
	defer l.Close()
	if err := firstLoad(enforcement, logger); err != nil {
		return err
	}
	server, err := proxy.New(proxy.Config{Upstream: upstream, Decider: l, Logger: logger,
		Trusts: func(peer netip.Addr) bool { return enforcement.Set().TrustsPeer(peer) }})
	if err != nil {
		return usageError{err}
	}
	return serve(ctx, o, server, adminHandler(registry, enforcement), enforcement, logger)
}

func newLogger(o options) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, usageError{errors.New("--log-level: write debug, info, warn or error")}
	}
	handler := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, handler)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, handler)), nil
	}
	return nil, usageError{errors.New("--log-format: write text or json")}
}

// check reads the flags that have a form.
func (o options) check() (*url.URL, *v1alpha1.ClientAddress, error) {
	if len(o.policies) == 0 {
		return nil, nil, usageError{errors.New("--policies: name a file or folder, for example --policies config/samples/quickstart")}
	}
	if o.upstream == "" {
		return nil, nil, usageError{errors.New("--upstream: name the application's address, for example --upstream http://127.0.0.1:3000")}
	}
	upstream, err := url.Parse(o.upstream)
	if err != nil {
		return nil, nil, usageError{errors.New("--upstream: write an address such as http://127.0.0.1:3000")}
	}
	if len(o.trustedProxies) == 0 {
		return upstream, nil, nil
	}
	address := &v1alpha1.ClientAddress{}
	for _, text := range o.trustedProxies {
		if _, err := policy.ParseRange(text); err != nil {
			return nil, nil, usageError{fmt.Errorf("--trusted-proxies: %q: %w", text, err)}
		}
		address.TrustedProxies = append(address.TrustedProxies, v1alpha1.AddressRange(text))
	}
	return upstream, address, nil
}

// firstLoad puts the first set in force; without one there is nothing to serve.
func firstLoad(e *standalone.Enforcement, logger *slog.Logger) error {
	_, problems := e.Load()
	if errs := problems.Errors(); len(errs) > 0 {
		return errs
	}
	for _, problem := range problems {
		logger.Warn("policies look odd", "problem", problem.String())
	}
	return nil
}

// serve listens, runs everything, and ends it in order: first the proxy's
// requests, then the rest.
func serve(ctx context.Context, o options, server *proxy.Server, admin http.Handler, e *standalone.Enforcement, logger *slog.Logger) error {
	front, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	back, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.adminListen)
	if err != nil {
		return errors.Join(fmt.Errorf("--admin-listen %s: %w", o.adminListen, err), front.Close())
	}
	adminServer := &http.Server{Handler: admin, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(front) }()
	go func() { failed <- adminServer.Serve(back) }()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	go e.Watch(watching)
	o.announce(logger, e, front, back)

	select {
	case err = <-failed:
	case <-ctx.Done():
		logger.Info("draining", "timeout", o.drainTimeout)
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drainTimeout)
	defer cancel()
	if drained := server.Shutdown(draining); drained != nil {
		logger.Warn("requests were cut at the end of the drain timeout")
	}
	_ = adminServer.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// announce says what runs where.
func (o options) announce(logger *slog.Logger, e *standalone.Enforcement, front, back net.Listener) {
	switch {
	case o.redis == standalone.Embedded:
		logger.Warn("counters live in this process only and are lost when it ends (--redis embedded)")
	case o.redis != "":
		logger.Info("all policies count in the redis of --redis")
	}
	names := []string{}
	for _, p := range e.Set().Policies() {
		names = append(names, p.Name.String())
	}
	logger.Info("enforcing", "version", version, "listen", front.Addr().String(), "admin", back.Addr().String(),
		"policies", strings.Join(names, ","))
}
