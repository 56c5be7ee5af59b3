// Command manager reconciles RateLimitPolicies and RedisBackends in a Kubernetes
// cluster, hands them to enforcers, and writes what has become of them into their
// statuses.
//
// It exits with 0 when it was asked to end, with 1 when something is wrong with the
// surroundings, and with 2 when something is wrong with its flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-dev/weir/internal/manager"
	"github.com/weir-dev/weir/internal/policy"
)

// version is set when the binary is built.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run carries out a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(stderr, "manager: %v\n", err)
	if usage := (usageError{}); errors.As(err, &usage) {
		return 2
	}
	return 1
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func flagError(flag, format string, args ...any) error {
	return usageError{fmt.Errorf("--%s: "+format, append([]any{flag}, args...)...)}
}

// flags are as they were typed.
type flags struct {
	kubeconfig     string
	streamListen   string
	certFile       string
	keyFile        string
	healthListen   string
	metricsListen  string
	defaultBackend string
	shadow         bool
	leaderElect    bool
	namespace      string
	logLevel       string
}

func command() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use:   "manager --tls-cert-file FILE --tls-key-file FILE",
		Short: "Reconcile RateLimitPolicies, and hand them to enforcers",
		Long: `Fills its cache with the cluster's RateLimitPolicies and RedisBackends, hands each
enforcer those that concern it, and writes into their statuses what has become of
them. Run two or more with --leader-elect: all serve enforcers, one writes.`,
		Example: `  # On a machine with a kubeconfig, for a try:
  manager --kubeconfig ~/.kube/config --tls-cert-file tls.crt --tls-key-file tls.key

  # Stop all denying at once, and say so in every status:
  manager --shadow …`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%q is not known here; see %s --help", args[0], c.CommandPath())}
			}
			return nil
		},
		RunE:          func(c *cobra.Command, _ []string) error { return f.run(c) },
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	c.SetVersionTemplate("{{.Version}}\n")
	s := c.Flags()
	s.SortFlags = false
	s.StringVar(&f.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`FILE` that says where the cluster is; absent: the one that this runs in")
	s.StringVar(&f.streamListen, "stream-listen", ":9443", "`ADDR` where enforcers connect")
	s.StringVar(&f.certFile, "tls-cert-file", "/etc/weir/tls/tls.crt", "`FILE` with the stream's certificate; read anew when it changes")
	s.StringVar(&f.keyFile, "tls-key-file", "/etc/weir/tls/tls.key", "`FILE` with its key")
	s.StringVar(&f.healthListen, "health-listen", ":8081", "`ADDR` of /healthz and /readyz; 0 for none")
	s.StringVar(&f.metricsListen, "metrics-listen", ":8080", "`ADDR` of /metrics; 0 for none")
	s.StringVar(&f.defaultBackend, "default-backend", "", "`NAMESPACE/NAME` of the RedisBackend of policies that name none, where their namespace has no RedisBackend \"default\"")
	s.BoolVar(&f.shadow, "shadow", false, "the kill switch: every policy decides and counts, and none denies")
	s.BoolVar(&f.leaderElect, "leader-elect", false, "let one replica of several write")
	s.StringVar(&f.namespace, "namespace", "", "`NAMESPACE` of this program, for its Lease; absent: the one that it runs in")
	s.StringVar(&f.logLevel, "log-level", "info", "least `LEVEL` of what is logged: debug, info, warn or error")
	return c
}

// run works until the command's context ends.
func (f *flags) run(c *cobra.Command) error {
	config, err := f.config(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if config.Cluster, err = f.cluster(); err != nil {
		return err
	}
	config.Logger.Info("starting", "version", version)
	m, err := manager.New(c.Context(), config)
	if err != nil {
		return err
	}
	return m.Run(c.Context())
}

// config reads the flags that have a form.
func (f *flags) config(log io.Writer) (c manager.Config, err error) {
	c = manager.Config{
		StreamListen: f.streamListen, HealthListen: f.healthListen, MetricsListen: f.metricsListen, CertFile: f.certFile, KeyFile: f.keyFile,
		Shadow: f.shadow, LeaderElection: f.leaderElect, Namespace: f.namespace,
	}
	for flag, address := range map[string]string{"stream-listen": f.streamListen, "health-listen": f.healthListen, "metrics-listen": f.metricsListen} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "0" || flag == "stream-listen") {
			return c, flagError(flag, "%q is no address: write host:port, for example :9443", address)
		}
	}
	if f.defaultBackend != "" {
		namespace, name, ok := strings.Cut(f.defaultBackend, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return c, flagError("default-backend", "%q is no name: write namespace/name", f.defaultBackend)
		}
		c.DefaultBackend = policy.Name{Namespace: namespace, Name: name}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return c, flagError("log-level", "%q is not known: write debug, info, warn or error", f.logLevel)
	}
	c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	return c, nil
}

// cluster finds the API server.
func (f *flags) cluster() (*rest.Config, error) {
	if f.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, usageError{errors.New("this does not run in a cluster: say where one is with --kubeconfig")}
	}
	return config, nil
}
