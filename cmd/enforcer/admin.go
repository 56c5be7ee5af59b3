package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-dev/weir/internal/enforcer/standalone"
)

// adminHandler serves probes and metrics, and the policies in force to callers on
// this machine. It is made after the first policies are in force, so whoever
// reaches it finds a ready enforcer; a Redis that is away does not change that.
func adminHandler(registry *prometheus.Registry, e *standalone.Enforcement) http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /readyz", ok)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/policies", func(w http.ResponseWriter, r *http.Request) {
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !peer.Addr().Unmap().IsLoopback() {
			http.Error(w, "this page is for callers on this machine", http.StatusForbidden)
			return
		}
		showPolicies(w, e)
	})
	return mux
}

// policyView is what the debug page tells of a policy. It holds no secrets.
type policyView struct {
	Policy      string     `json:"policy"`
	Mode        string     `json:"mode"`
	FailureMode string     `json:"failureMode"`
	Backend     string     `json:"backend"`
	Budget      string     `json:"budget"`
	Rules       []ruleView `json:"rules"`
}

type ruleView struct {
	Rule   string `json:"rule"`
	Limit  int64  `json:"limit"`
	Window string `json:"window"`
}

func showPolicies(w http.ResponseWriter, e *standalone.Enforcement) {
	set, backends := e.InForce()
	views := []policyView{}
	for i, p := range set.Policies() {
		view := policyView{Policy: p.Name.String(), Mode: string(p.Mode), FailureMode: string(p.FailureMode),
			Backend: backends[i].Name.String(), Budget: backends[i].Budget.String()}
		for _, rule := range p.Rules {
			view.Rules = append(view.Rules, ruleView{rule.Name, rule.Limit, (time.Duration(rule.Window) * time.Second).String()})
		}
		views = append(views, view)
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(views) // the caller may be gone
}
