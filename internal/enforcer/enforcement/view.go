package enforcement

import (
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
)

// PolicyView is what may be told of a policy in force. There are no secrets in it.
type PolicyView struct {
	Policy      string      `json:"policy"`
	Source      string      `json:"source"`
	Domain      string      `json:"domain,omitempty"`
	Mode        string      `json:"mode"`
	FailureMode string      `json:"failureMode"`
	Backend     BackendView `json:"backend"`
	Exempt      []string    `json:"exempt,omitempty"`
	Rules       []RuleView  `json:"rules"`
}

// RuleView is what may be told of a rule.
type RuleView struct {
	Rule   string `json:"rule"`
	Limit  int64  `json:"limit"`
	Window string `json:"window"`
	Key    string `json:"key"`
}

// BackendView is what may be told of where a policy counts.
type BackendView struct {
	Name      string   `json:"name"`
	Mode      string   `json:"mode"`
	Addresses []string `json:"addresses"`
	Database  int      `json:"database"`
	TLS       bool     `json:"tls"`
	KeyPrefix string   `json:"keyPrefix"`
	Budget    string   `json:"budget"`
}

// View tells what is in force.
func (e *Enforcement) View() []PolicyView {
	f := e.current.Load()
	views := make([]PolicyView, len(f.policies))
	for i, p := range f.set.Policies() {
		written := f.policies[i]
		views[i] = PolicyView{
			Policy: p.Name.String(), Source: written.Source, Domain: p.Domain,
			Mode: string(p.Mode), FailureMode: string(p.FailureMode), Backend: viewOf(written.Target),
		}
		for _, e := range written.Spec.Exempt {
			views[i].Exempt = append(views[i].Exempt, e.Name)
		}
		for j, rule := range p.Rules {
			window := (time.Duration(rule.Window) * time.Second).String()
			views[i].Rules = append(views[i].Rules, RuleView{rule.Name, rule.Limit, window, keyText(written.Spec.Rules[j].Key)})
		}
	}
	return views
}

func viewOf(t *backends.Target) BackendView {
	v := BackendView{
		Name: t.Name.String(), Mode: string(t.Config.Mode), Addresses: t.Config.Addresses, Database: t.Config.Database,
		TLS: t.Config.TLS != nil, KeyPrefix: t.KeyPrefix, Budget: t.Budget.String(),
	}
	if v.KeyPrefix == "" {
		v.KeyPrefix = policy.DefaultKeyPrefix
	}
	if v.Mode == "" {
		v.Mode = string(v1alpha1.RedisStandalone)
	}
	return v
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
