package distribution

import (
	"context"
	"time"
)

// Identity is who an enforcer is, as its credential says.
type Identity struct {
	// Namespace, Pod and UID are of the pod that it runs in.
	Namespace, Pod, UID string
	// Labels are the pod's.
	Labels map[string]string
	// Gateway tells a gateway enforcer, for the policies with a domain of
	// Namespaces; "*" stands for all.
	Gateway    bool
	Namespaces []string
	// Expiry is when the credential ends.
	Expiry time.Time
}

// key tells enforcers apart.
func (i *Identity) key() string { return i.Namespace + "/" + i.Pod + "/" + i.UID }

// Authenticator finds out who a token is for. The error of a token that is not good
// is told to the caller, so it holds no part of it.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Identity, error)
}
