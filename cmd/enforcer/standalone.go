package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/filesource"
	"github.com/weir-dev/weir/internal/enforcer/standalone"
	"github.com/weir-dev/weir/internal/policy"
)

// standaloneFlags are the flags of standalone as they were typed.
type standaloneFlags struct {
	policies       []string
	watch          bool
	upstream       string
	listen         string
	adminListen    string
	redis          string
	trustedProxies []string
	drainTimeout   time.Duration
	logLevel       string
	logFormat      string
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
	flags.StringVar(&f.upstream, "upstream", "", "`URL` of the application, such as http://127.0.0.1:3000 (required)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDR` to serve at; :8080 for all of this machine's")
	flags.StringVar(&f.adminListen, "admin-listen", "127.0.0.1:8090", "`ADDR` of probes, metrics and debug pages")
	flags.StringVar(&f.redis, "redis", "", "`URL|embedded`: redis://[user:password@]host:port[/database] to count all policies there, or embedded for a Redis in this process; absent: the RedisBackends that policies name")
	flags.StringSliceVar(&f.trustedProxies, "trusted-proxies", nil, "`CIDR,...` of proxies whose X-Forwarded-For is believed, for policies without clientAddress; absent: nobody's")
	flags.BoolVar(&f.watch, "watch", true, "take changes of the files over")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Second, "`TIME` that requests under way have after SIGTERM or SIGINT; a second signal ends them")
	flags.StringVar(&f.logLevel, "log-level", "info", "least `LEVEL` of what is logged: debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "`FORMAT` of logs: text or json")
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
func (f *standaloneFlags) config(log io.Writer) (standalone.Config, error) {
	c := standalone.Config{Policies: f.policies, Watch: f.watch, Listen: f.listen, AdminListen: f.adminListen, DrainTimeout: f.drainTimeout}
	var err error
	if c.Logger, err = f.logger(log); err != nil {
		return c, err
	}
	if len(f.policies) == 0 {
		return c, flagError("policies", errors.New("name a directory or a file, for example --policies config/samples/quickstart"))
	}
	if c.Upstream, err = parseUpstream(f.upstream); err != nil {
		return c, flagError("upstream", err)
	}
	if err := checkAddress(f.listen); err != nil {
		return c, flagError("listen", err)
	}
	if err := checkAddress(f.adminListen); err != nil {
		return c, flagError("admin-listen", err)
	}
	if f.redis != "" {
		if c.Redis, err = standalone.ParseRedis(f.redis); err != nil {
			return c, flagError("redis", err)
		}
	}
	if c.ClientAddress, err = trusting(f.trustedProxies); err != nil {
		return c, flagError("trusted-proxies", err)
	}
	if f.drainTimeout < 0 {
		return c, flagError("drain-timeout", errors.New("write a duration such as 30s, or 0s to cut at once"))
	}
	return c, nil
}

func (f *standaloneFlags) logger(to io.Writer) (*slog.Logger, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[f.logLevel]
	if !ok {
		return nil, flagError("log-level", fmt.Errorf("%q is not known: write debug, info, warn or error", f.logLevel))
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(to, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, options)), nil
	}
	return nil, flagError("log-format", fmt.Errorf("%q is not known: write text or json", f.logFormat))
}

// parseUpstream refuses what could only be guessed at. A path in front of every
// path would change what the application receives.
func parseUpstream(text string) (*url.URL, error) {
	const form = "write the application's address as http://host:port, for example http://127.0.0.1:3000"
	if text == "" {
		return nil, errors.New(form)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, fmt.Errorf("this is no address: %s", form)
	case u.User != nil:
		return nil, fmt.Errorf("remove the user: requests are passed on with the client's own credentials; %s", form)
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return nil, fmt.Errorf("remove what follows host and port: paths are passed on as the client sends them; %s", form)
	case u.Port() != "" && !isPort(u.Port()):
		return nil, fmt.Errorf("a port is a number from 1 to 65535; %s", form)
	}
	return u, nil
}

// checkAddress checks an address to listen at. Port 0 means any that is free.
func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil || port != "0" && !isPort(port) {
		return fmt.Errorf("%q is no address: write host:port, for example 127.0.0.1:8080, or :8080 for all of this machine's", text)
	}
	return nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// trusting is the client address of policies that have none; nil without proxies.
func trusting(proxies []string) (*v1alpha1.ClientAddress, error) {
	if len(proxies) == 0 {
		return nil, nil
	}
	address := &v1alpha1.ClientAddress{}
	for _, text := range proxies {
		if _, err := policy.ParseRange(text); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		address.TrustedProxies = append(address.TrustedProxies, v1alpha1.AddressRange(text))
	}
	return address, nil
}
