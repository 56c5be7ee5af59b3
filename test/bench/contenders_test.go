//go:build bench

package bench

import (
	"fmt"
	"testing"

	redistest "github.com/weir-dev/weir/test/redis"
)

// contender is something that a client can send requests to.
type contender struct {
	name    string
	address string
	pid     int
	redis   int     // the process of its Redis, 0 without one
	served  float64 // requests so far
}

func startApplication(t *testing.T, dir string) *contender {
	address := freeAddress(t)
	binary := build(t, dir, "test/demoapp")
	return &contender{name: "the application itself", address: address,
		pid: start(t, address, binary, "--listen", address)}
}

func startWeir(t *testing.T, dir, upstream string, limit int) *contender {
	redis := redistest.Start(t)
	address, admin := freeAddress(t), freeAddress(t)
	policies := writeFile(t, dir, "policies.yaml", fmt.Sprintf(weirPolicy, limit))
	binary := build(t, dir, "cmd/enforcer")
	return &contender{name: "Weir, with Redis", address: address,
		pid: start(t, address, binary, "standalone", "--policies", policies, "--upstream", "http://"+upstream,
			"--listen", address, "--admin-listen", admin, "--redis", "redis://"+redis.Addr()+"/0", "--log-level", "error"),
		redis: pidOf(t, redis)}
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

func startNginx(t *testing.T, dir, upstream string, limit int) *contender {
	address := freeAddress(t)
	config := writeFile(t, dir, "nginx.conf", fmt.Sprintf(nginxConfig, dir, address, upstream, limit))
	return &contender{name: "nginx, limit_req", address: address,
		pid: start(t, address, program(t, "nginx"), "-e", dir+"/nginx-error.log", "-c", config)}
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
  limit_req_zone $binary_remote_addr zone=callers:10m rate=%[4]dr/s;
  upstream application { server %[3]s; keepalive 128; }
  server {
    listen %[2]s;
    keepalive_requests 1000000000;
    location / {
      limit_req_status 429;
      limit_req zone=callers burst=%[4]d nodelay;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass http://application;
    }
  }
}
`

func startHAProxy(t *testing.T, dir, upstream string, limit int) *contender {
	address := freeAddress(t)
	config := writeFile(t, dir, "haproxy.cfg", fmt.Sprintf(haproxyConfig, address, upstream, limit))
	return &contender{name: "HAProxy, stick table", address: address,
		pid: start(t, address, program(t, "haproxy"), "-f", config)}
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
  bind %[1]s
  stick-table type ip size 100k expire 60s store http_req_rate(60s)
  http-request track-sc0 src
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt %[3]d }
  default_backend application
backend application
  server one %[2]s
`
