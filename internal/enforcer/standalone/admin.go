package standalone

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// adminHandler serves probes and metrics, and the policies in force to callers on
// this machine. Readiness ends with draining, and not for want of a Redis: what
// happens then is the policies' to say.
func adminHandler(registry *prometheus.Registry, e *enforcement, draining *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/policies", func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.RemoteAddr) {
			http.Error(w, "this page is for callers on this machine: ask 127.0.0.1", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(e.current.Load().view()) // the caller may be gone
	})
	return mux
}

// policyView is what the debug page tells of a policy. There are no secrets in it.
type policyView struct {
	Policy      string      `json:"policy"`
	Source      string      `json:"source"`
	Domain      string      `json:"domain,omitempty"`
	Mode        string      `json:"mode"`
	FailureMode string      `json:"failureMode"`
	Backend     backendView `json:"backend"`
	Exempt      []string    `json:"exempt,omitempty"`
	Rules       []ruleView  `json:"rules"`
}

type ruleView struct {
	Rule   string `json:"rule"`
	Limit  int64  `json:"limit"`
	Window string `json:"window"`
	Key    string `json:"key"`
}

type backendView struct {
	Name      string `json:"name"`
	Address   string `json:"address"`
	Database  int    `json:"database"`
	TLS       bool   `json:"tls"`
	KeyPrefix string `json:"keyPrefix"`
	Budget    string `json:"budget"`
}

func (f *inForce) view() []policyView {
	views := make([]policyView, len(f.policies))
	for i, p := range f.set.Policies() {
		written := f.policies[i]
		views[i] = policyView{
			Policy: p.Name.String(), Source: written.Place(), Domain: p.Domain,
			Mode: string(p.Mode), FailureMode: string(p.FailureMode), Backend: written.target.view(),
		}
		for _, e := range written.Spec.Exempt {
			views[i].Exempt = append(views[i].Exempt, e.Name)
		}
		for j, rule := range p.Rules {
			window := (time.Duration(rule.Window) * time.Second).String()
			views[i].Rules = append(views[i].Rules, ruleView{rule.Name, rule.Limit, window, keyText(written.Spec.Rules[j].Key)})
		}
	}
	return views
}

func (t *target) view() backendView {
	prefix := t.keyPrefix
	if prefix == "" {
		prefix = policy.DefaultKeyPrefix
	}
	return backendView{
		Name: t.name.String(), Address: t.config.Addresses[0], Database: t.config.Database,
		TLS: t.config.TLS != nil, KeyPrefix: prefix, Budget: t.budget.String(),
	}
}

// keyText says who is counted.
func keyText(key []v1alpha1.KeyPart) string {
	if len(key) == 0 {
		return "everyone together"
	}
	parts := make([]string, len(key))
	for i, part := range key {
		parts[i] = strings.TrimSpace(string(part.Type) + " " + part.Name)
	}
	return strings.Join(parts, ", ")
}
