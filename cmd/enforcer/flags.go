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

	"github.com/spf13/pflag"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// frontFlags are, as they were typed, the flags of all that stands in front of an
// application.
type frontFlags struct {
	upstream       string
	listen         string
	adminListen    string
	trustedProxies []string
	drainTimeout   time.Duration
	logLevel       string
	logFormat      string
}

// front is what they mean.
type front struct {
	upstream      *url.URL
	clientAddress *v1alpha1.ClientAddress
	logger        *slog.Logger
}

func (f *frontFlags) addUpstream(flags *pflag.FlagSet) {
	flags.StringVar(&f.upstream, "upstream", "", "`URL` of the application, such as http://127.0.0.1:3000 (required)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDR` to serve at; :8080 for all of this machine's")
	flags.StringVar(&f.adminListen, "admin-listen", "127.0.0.1:8090", "`ADDR` of probes, metrics and debug pages")
}

func (f *frontFlags) addRest(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.trustedProxies, "trusted-proxies", nil, "`CIDR,...` of proxies whose X-Forwarded-For is believed, for policies without clientAddress; absent: nobody's")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Second, "`TIME` that requests under way have after SIGTERM or SIGINT; a second signal ends them")
	flags.StringVar(&f.logLevel, "log-level", "info", "least `LEVEL` of what is logged: debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "`FORMAT` of logs: text or json")
}

// parse reads the flags that have a form.
func (f *frontFlags) parse(log io.Writer) (p front, err error) {
	if p.logger, err = f.logger(log); err != nil {
		return p, err
	}
	if p.upstream, err = parseUpstream(f.upstream); err != nil {
		return p, flagError("upstream", err)
	}
	if err := checkAddress(f.listen); err != nil {
		return p, flagError("listen", err)
	}
	if err := checkAddress(f.adminListen); err != nil {
		return p, flagError("admin-listen", err)
	}
	if p.clientAddress, err = trusting(f.trustedProxies); err != nil {
		return p, flagError("trusted-proxies", err)
	}
	if f.drainTimeout < 0 {
		return p, flagError("drain-timeout", errors.New("write a duration such as 30s, or 0s to cut at once"))
	}
	return p, nil
}

func (f *frontFlags) logger(to io.Writer) (*slog.Logger, error) {
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
