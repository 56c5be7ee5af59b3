package distribution

import (
	"github.com/weir-dev/weir/internal/distribution/streampb"
	"github.com/weir-dev/weir/internal/enforcer/backends"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

func nameToPB(n policy.Name) *streampb.Name {
	return &streampb.Name{Namespace: n.Namespace, Name: n.Name}
}

func nameFromPB(n *streampb.Name) policy.Name {
	return policy.Name{Namespace: n.GetNamespace(), Name: n.GetName()}
}

func loginToPB(l policycache.LoginName) *streampb.Login {
	return &streampb.Login{Backend: nameToPB(l.Backend), Namespace: l.Namespace}
}

func loginFromPB(l *streampb.Login) policycache.LoginName {
	return policycache.LoginName{Backend: nameFromPB(l.GetBackend()), Namespace: l.GetNamespace()}
}

func loginsToPB(logins []policycache.LoginName) []*streampb.Login {
	list := make([]*streampb.Login, len(logins))
	for i, l := range logins {
		list[i] = loginToPB(l)
	}
	return list
}

func loginsFromPB(list []*streampb.Login) []policycache.LoginName {
	logins := make([]policycache.LoginName, len(list))
	for i, l := range list {
		logins[i] = loginFromPB(l)
	}
	return logins
}

func policyToPB(p *policycache.PolicyItem) *streampb.Item {
	return &streampb.Item{Item: &streampb.Item_Policy{Policy: &streampb.Policy{
		Name: nameToPB(p.Name), Generation: p.Generation, Spec: p.JSON, Login: loginToPB(p.Login),
	}}}
}

func backendToPB(b *policycache.BackendItem) *streampb.Item {
	s := &b.Secrets
	return &streampb.Item{Item: &streampb.Item_Backend{Backend: &streampb.Backend{
		Login: loginToPB(b.LoginName), Spec: b.JSON,
		Redis: credentialsToPB(s.Login), Sentinel: credentialsToPB(s.Sentinel),
		Ca: s.TLS.CA, Certificate: s.TLS.Certificate, Key: s.TLS.Key, HashKey: s.HashKey,
	}}}
}

func credentialsToPB(l backends.Login) *streampb.Credentials {
	return &streampb.Credentials{Username: l.Username, Password: l.Password}
}

func credentialsFromPB(c *streampb.Credentials) backends.Login {
	return backends.Login{Username: c.GetUsername(), Password: c.GetPassword()}
}

// secretsFromPB keeps apart what is empty and what is not there, as backends does.
func secretsFromPB(b *streampb.Backend) backends.Secrets {
	return backends.Secrets{
		Login: credentialsFromPB(b.GetRedis()), Sentinel: credentialsFromPB(b.GetSentinel()),
		TLS:     backends.Material{CA: orNil(b.GetCa()), Certificate: orNil(b.GetCertificate()), Key: orNil(b.GetKey())},
		HashKey: orNil(b.GetHashKey()),
	}
}

func orNil(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}
