//go:build bench

package bench

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	redistest "github.com/weir-dev/weir/test/redis"
)

// contender is something that a client can send requests to.
type contender struct {
	name    string
	address string
	process *process

	rate []float64 // requests a second, by round
	cost []float64 // CPU microseconds of the contender a request, by round
}

const (
	proxyRounds  = 3
	wrkSeconds   = 5
	wrkCallers   = 64
	neverReached = 1_000_000_000
)

// TestProxyNextToPeers sends the same load through the bare application, Weir,
// nginx with limit_req and HAProxy with a stick table, in turns, and prints
// medians and ratios. Limits are set so high that nobody is denied: what is
// measured is the cost of counting.
func TestProxyNextToPeers(t *testing.T) {
	dir := t.TempDir()
	app := startApplication(t, dir)
	contenders := []*contender{
		app,
		startWeir(t, dir, app.address),
		startNginx(t, dir, app.address),
		startHAProxy(t, dir, app.address),
	}
	wrk := program(t, "wrk")
	for range proxyRounds {
		for _, c := range contenders {
			c.measure(t, wrk)
		}
	}
	t.Logf("%-28s %12s %10s %14s", "through", "requests/s", "ratio", "CPU µs/request")
	for _, c := range contenders {
		t.Logf("%-28s %12.0f %10.2f %14.1f", c.name, median(c.rate), median(c.rate)/median(app.rate), median(c.cost))
	}
}

func startApplication(t *testing.T, dir string) *contender {
	address := freeAddress(t)
	binary := build(t, dir, "test/demoapp")
	return &contender{name: "the application itself", address: address,
		process: start(t, address, binary, "--listen", address)}
}

func startWeir(t *testing.T, dir, upstream string) *contender {
	redis := redistest.Start(t)
	address, admin := freeAddress(t), freeAddress(t)
	policies := writeFile(t, dir, "policies.yaml", fmt.Sprintf(weirPolicy, neverReached))
	binary := build(t, dir, "cmd/enforcer")
	return &contender{name: "Weir, Redis on this machine", address: address,
		process: start(t, address, binary, "standalone", "--policies", policies, "--upstream", "http://"+upstream,
			"--listen", address, "--admin-listen", admin, "--redis", "redis://"+redis.Addr()+"/0", "--log-level", "error")}
}

const weirPolicy = `
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: bench, namespace: bench}
spec:
  selector: {}
  rules:
  - {name: per-user, limit: %d, window: 1h, key: [{type: ClientIP}]}
`

func startNginx(t *testing.T, dir, upstream string) *contender {
	address := freeAddress(t)
	config := writeFile(t, dir, "nginx.conf", fmt.Sprintf(nginxConfig, dir, address, upstream))
	return &contender{name: "nginx, limit_req", address: address,
		process: start(t, address, program(t, "nginx"), "-e", dir+"/nginx-error.log", "-c", config)}
}

const nginxConfig = `
daemon off;
worker_processes 2;
pid %[1]s/nginx.pid;
error_log %[1]s/nginx-error.log crit;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  limit_req_zone $binary_remote_addr zone=callers:10m rate=1000000r/s;
  upstream application { server %[3]s; keepalive 128; }
  server {
    listen %[2]s;
    keepalive_requests 1000000000;
    location / {
      limit_req zone=callers burst=1000000 nodelay;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass http://application;
    }
  }
}
`

func startHAProxy(t *testing.T, dir, upstream string) *contender {
	address := freeAddress(t)
	config := writeFile(t, dir, "haproxy.cfg", fmt.Sprintf(haproxyConfig, address, upstream))
	return &contender{name: "HAProxy, stick table", address: address,
		process: start(t, address, program(t, "haproxy"), "-f", config)}
}

const haproxyConfig = `
global
  nbthread 2
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option http-keep-alive
  http-reuse always
frontend front
  bind %s
  stick-table type ip size 100k expire 60s store http_req_rate(60s)
  http-request track-sc0 src
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000000 }
  default_backend application
backend application
  server one %s
`

var (
	wrkRate   = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkCount  = regexp.MustCompile(`(\d+) requests in`)
	wrkFailed = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)|Socket errors: .*`)
)

// measure sends one round of load.
func (c *contender) measure(t *testing.T, wrk string) {
	t.Helper()
	before := c.process.cpu(t)
	out, err := exec.CommandContext(t.Context(), wrk, "-t1", "-c"+strconv.Itoa(wrkCallers),
		"-d"+strconv.Itoa(wrkSeconds)+"s", "http://"+c.address+"/").CombinedOutput()
	if err != nil {
		t.Fatalf("wrk: %v\n%s", err, out)
	}
	used := c.process.cpu(t) - before
	if failed := wrkFailed.Find(out); failed != nil {
		t.Errorf("through %s: %s", c.name, failed)
	}
	rate, _ := strconv.ParseFloat(string(wrkRate.FindSubmatch(out)[1]), 64)
	count, _ := strconv.ParseFloat(string(wrkCount.FindSubmatch(out)[1]), 64)
	c.rate = append(c.rate, rate)
	c.cost = append(c.cost, float64(used.Microseconds())/count)
}
