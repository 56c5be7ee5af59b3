package certs

import (
	"context"
	"log/slog"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// SecretName is the name of the Secret with a manager's own certificates.
const SecretName = "weir-certificates" //nolint:gosec // a name

// Keeper keeps a Holder up to date with the manager's own certificates. Every
// replica runs one; the one that leads makes what is missing.
type Keeper struct {
	Holder
	// Secrets are those of the manager's namespace.
	Secrets corev1client.SecretInterface
	// Names are the DNS names to serve, in order.
	Names []string
	// Lifetimes default to DefaultLifetimes.
	Lifetimes Lifetimes
	// Elected is closed once this replica leads.
	Elected <-chan struct{}
	Logger  *slog.Logger
	// Now defaults to time.Now, and Every to a few seconds.
	Now   func() time.Time
	Every time.Duration
}

// Run looks after the certificates until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	every := k.Every
	if every == 0 {
		every = lookEvery
	}
	// At first all replicas wait for the one that leads.
	for k.Ready() != nil && ctx.Err() == nil {
		first, cancel := context.WithCancel(ctx)
		k.OnChange(cancel)
		repeat(first, time.Second, k.Logger, "there is no certificate yet", func() error { return k.Look(ctx) })
		cancel()
	}
	repeat(ctx, every, k.Logger, "the certificates can't be looked after, the last good ones are served", func() error { return k.Look(ctx) })
}

// Look reads the Secret once, and brings it up to date where this replica leads.
func (k *Keeper) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	secret, err := k.Secrets.Get(ctx, SecretName, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	if k.leads() {
		if secret, err = k.advance(ctx, secret, missing); err != nil {
			return err
		}
	} else if missing {
		return errNone
	}
	return k.set(secret.Data[keyLeaf], secret.Data[keyLeafKey], secret.Data[keyBundle])
}

func (k *Keeper) leads() bool {
	select {
	case <-k.Elected:
		return true
	default:
		return false
	}
}

// advance writes the Secret if something in it is due.
func (k *Keeper) advance(ctx context.Context, secret *corev1.Secret, missing bool) (*corev1.Secret, error) {
	now, lifetimes := time.Now(), k.Lifetimes
	if k.Now != nil {
		now = k.Now()
	}
	if lifetimes == (Lifetimes{}) {
		lifetimes = DefaultLifetimes
	}
	if missing {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName, Labels: map[string]string{"app.kubernetes.io/part-of": "weir"}}}
	}
	s := parse(secret.Data)
	changed, err := s.advance(now, lifetimes, k.Names)
	if err != nil {
		return nil, err
	}
	data, err := s.data()
	if err != nil {
		return nil, err
	}
	if !changed && maps.EqualFunc(secret.Data, data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return secret, nil
	}
	// Somebody else's write since the read makes a conflict: the next look sees it.
	secret.Data = data
	if missing {
		secret, err = k.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		secret, err = k.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, err
	}
	k.Logger.Info("certificates are made", "until", s.leaf.NotAfter, "authority", s.signing.certificate.Subject.CommonName, "publishes another", s.next != nil)
	return secret, nil
}
