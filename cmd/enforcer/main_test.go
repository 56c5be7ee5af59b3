package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outcome is what a command line led to.
type outcome struct {
	code           int
	stdout, stderr string
}

func enforcer(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what would run until it is told to end, ends
	code := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

const goodPolicy = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: storefront, namespace: shop}
spec:
  selector: {}
  rules:
  - {name: all, limit: 10, window: 1m}
`

const goodBackend = `---
apiVersion: weir.dev/v1alpha1
kind: RedisBackend
metadata: {name: default, namespace: shop}
spec: {mode: Standalone, addresses: ["127.0.0.1:6379"]}
`

// badPolicy has two problems.
var badPolicy = strings.Replace(goodPolicy, "limit: 10, window: 1m", "limit: ten, window: 1m, bogus: 1", 1)

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValidate(t *testing.T) {
	good := writeFile(t, "good.yaml", goodPolicy+goodBackend)
	bad := writeFile(t, "bad.yaml", badPolicy)
	alone := writeFile(t, "alone.yaml", goodPolicy)
	lost := writeFile(t, "lost.yaml", strings.Replace(goodPolicy, "selector: {}", "selector: {}\n  redisRef: {name: lost}", 1)+goodBackend)
	chosen := writeFile(t, "chosen.yaml", strings.Replace(goodPolicy, "1m}", "1m, key: [{type: Cookie, name: id}]}", 1)+goodBackend)
	for name, test := range map[string]struct {
		args  []string
		stdin string
		want  outcome
	}{
		"a good file":                      {[]string{good}, "", outcome{0, "1 policy, 1 backend: ok\n", ""}},
		"a directory":                      {[]string{filepath.Dir(good)}, "", outcome{0, "1 policy, 1 backend: ok\n", ""}},
		"the samples":                      {[]string{"../../config/samples/quickstart"}, "", outcome{0, "1 policy, 1 backend: ok\n", ""}},
		"standard input":                   {[]string{"-"}, goodPolicy + goodBackend, outcome{0, "1 policy, 1 backend: ok\n", ""}},
		"all problems are printed":         {[]string{bad}, "", outcome{1, bad + ":7: spec.rules[0].limit: is text; write a whole number, without quotes or fraction\n" + bad + ":7: spec.rules[0].bogus: no such field; known here: name, match, limit, window, key, algorithm\n", ""}},
		"a backend that is not there":      {[]string{lost}, "", outcome{1, lost + ":6: spec.redisRef: policy shop/storefront: redisRef names RedisBackend shop/lost, which none of the files holds; known: shop/default\n", ""}},
		"no backends at all":               {[]string{alone}, "", outcome{0, alone + ":4: spec: warning: policy shop/storefront has no redisRef, and none of the files holds RedisBackend shop/default, the default; known: none\n1 policy, 0 backends: ok\n", ""}},
		"a warning":                        {[]string{chosen}, "", outcome{0, chosen + ":6: spec.rules: warning: every rule is keyed by …", ""}},
		"several files are taken together": {[]string{alone, good}, "", outcome{1, good + ":3: metadata.name: RateLimitPolicy shop/storefront stands in the files twice, first in " + alone + ":1; remove one\n", ""}},
		"no such file":                     {[]string{"nothing.yaml"}, "", outcome{1, "", "enforcer: nothing.yaml does not exist: name a directory of policies, or a file\n"}},
		"no file":                          {nil, "", outcome{2, "", "enforcer: name at least one file, for example: enforcer validate policy.yaml\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := enforcer(t, test.stdin, append([]string{"validate"}, test.args...)...)
			if start, ok := strings.CutSuffix(test.want.stdout, "…"); ok && strings.HasPrefix(got.stdout, start) {
				got.stdout = test.want.stdout
			}
			if got != test.want {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestWrongCommandLinesSayHowToMendThem(t *testing.T) {
	path := writeFile(t, "good.yaml", goodPolicy+goodBackend)
	with := func(more ...string) []string {
		return append([]string{"standalone", "--policies", path, "--upstream", "http://127.0.0.1:3000"}, more...)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown command":    {[]string{"standalon"}, `"standalon" is not known here; see enforcer --help`},
		"an unknown flag":       {with("--polices", "x"), "unknown flag: --polices; see enforcer standalone --help"},
		"an argument":           {with("x"), `"x" is not known here; see enforcer standalone --help`},
		"no policies":           {[]string{"standalone", "--upstream", "http://127.0.0.1:3000"}, "--policies: name a directory or a file, for example --policies config/samples/quickstart"},
		"no upstream":           {[]string{"standalone", "--policies", path}, "--upstream: write the application's address as http://host:port"},
		"an upstream's scheme":  {with("--upstream", "localhost:3000"), "--upstream: this is no address: write the application's address as http://host:port"},
		"an upstream of digits": {with("--upstream", "127.0.0.1:3000"), "--upstream: this is no address: write the application's address as http://host:port"},
		"an upstream's host":    {with("--upstream", "http://:3000"), "--upstream: this is no address"},
		"an upstream's port":    {with("--upstream", "http://127.0.0.1:70000"), "--upstream: a port is a number from 1 to 65535"},
		"an upstream's path":    {with("--upstream", "http://127.0.0.1:3000/api"), "--upstream: remove what follows host and port: paths are passed on as the client sends them"},
		"an upstream's user":    {with("--upstream", "http://me:canary@127.0.0.1:3000"), "--upstream: remove the user"},
		"listen without port":   {with("--listen", "127.0.0.1"), `--listen: "127.0.0.1" is no address: write host:port, for example 127.0.0.1:8080`},
		"listen's port":         {with("--admin-listen", ":http2"), `--admin-listen: ":http2" is no address`},
		"another Redis":         {with("--redis", "memory"), "--redis: this is no address of a Redis: write redis://host:port"},
		"no CIDR":               {with("--trusted-proxies", "10.0.0.0/8,proxy"), `--trusted-proxies: "proxy": write an address such as`},
		"a level":               {with("--log-level", "loud"), `--log-level: "loud" is not known: write debug, info, warn or error`},
		"a format":              {with("--log-format", "xml"), `--log-format: "xml" is not known: write text or json`},
		"a duration":            {with("--drain-timeout", "-1s"), "--drain-timeout: write a duration such as 30s, or 0s to cut at once"},
	} {
		t.Run(name, func(t *testing.T) {
			got := enforcer(t, "", test.args...)
			if got.code != 2 || got.stdout != "" || !strings.HasPrefix(got.stderr, "enforcer: "+test.want) || strings.Contains(got.stderr, "canary") {
				t.Errorf("got %+v\nwant %q", got, test.want)
			}
		})
	}
}

func TestStandaloneRefusesBrokenPolicies(t *testing.T) {
	path := writeFile(t, "bad.yaml", badPolicy)
	got := enforcer(t, "", "standalone", "--policies", path, "--upstream", "http://127.0.0.1:3000", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	for _, want := range []string{path + ":7: spec.rules[0].limit: ", path + ":7: spec.rules[0].bogus: ", "enforcer: the policies can't be enforced; problems: 2\n"} {
		if got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("got %+v\nwant %q", got, want)
		}
	}
}

func TestHelpTeachesByExample(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {}, {"standalone", "--help"}, {"validate", "--help"}, {"version", "--help"}} {
		got := enforcer(t, "", args...)
		if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, "Examples:\n  ") || !strings.Contains(got.stdout, "  enforcer ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := enforcer(t, "", "version"); got != (outcome{0, version + "\n", ""}) {
		t.Errorf("version: %+v", got)
	}
}

// TestSignalsEndTheProcess runs the command as a process of its own.
func TestSignalsEndTheProcess(t *testing.T) {
	path := writeFile(t, "good.yaml", goodPolicy)
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			p := startProcess(t, "standalone", "--policies", path, "--redis", "embedded",
				"--upstream", "http://127.0.0.1:1", "--listen", freeAddress(t), "--admin-listen", freeAddress(t))
			if err := p.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := p.Wait(); err != nil {
				t.Errorf("the process ends with %v", err)
			}
		})
	}
}

func TestSecondSignalCutsRequests(t *testing.T) {
	arrived := make(chan struct{})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1))
			close(arrived)
		}
	}()
	address := freeAddress(t)
	p := startProcess(t, "standalone", "--policies", writeFile(t, "good.yaml", goodPolicy), "--redis", "embedded",
		"--upstream", "http://"+listener.Addr().String(), "--listen", address, "--admin-listen", freeAddress(t))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-arrived
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	for signals := 0; ; signals++ {
		_ = p.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if signals == 0 || err == nil {
				t.Errorf("after %d signals the process ends with %v", signals+1, err)
			}
			return
		case <-tick.C:
		}
	}
}

// TestMain makes this test's binary the command, where a test starts it as such.
func TestMain(m *testing.M) {
	if os.Getenv("ENFORCER_UNDER_TEST") != "" {
		main()
	}
	os.Exit(m.Run())
}

// startProcess starts the command and waits until it is ready. args end with the
// admin address.
func startProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ENFORCER_UNDER_TEST=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	deadline, tick := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !isReady(args[len(args)-1]) {
		select {
		case <-deadline:
			t.Fatal("the process is not ready after 30 s")
		case <-tick.C:
		}
	}
	return cmd
}

func isReady(admin string) bool {
	response, err := http.Get("http://" + admin + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
