// Package tokens finds out which pod a service account token belongs to. It asks the
// API server, and believes nothing that an enforcer says of itself.
package tokens

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/distribution"
)

// Audience is what a token for the stream must be meant for.
const Audience = "weir.dev/stream"

// What the API server says of a token that is bound to a pod.
const (
	extraPod = "authentication.kubernetes.io/pod-name"
	extraUID = "authentication.kubernetes.io/pod-uid"
	prefix   = "system:serviceaccount:"
)

// Reviewer is a distribution.Authenticator that asks an API server.
type Reviewer struct {
	Reviews authenticationclient.TokenReviewInterface
	// Pods reads pods.
	Pods client.Reader
	// Carries tells whether a pod carries an enforcer.
	Carries func(*corev1.Pod) bool
	// Gateways are the service accounts, namespace/name, of gateway enforcers, and
	// the namespaces that each is for; "*" stands for all.
	Gateways map[string][]string
}

// Authenticate implements distribution.Authenticator.
func (r *Reviewer) Authenticate(ctx context.Context, token string) (distribution.Identity, error) {
	var who distribution.Identity
	review, err := r.Reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return who, fmt.Errorf("%w: the API server does not answer", distribution.ErrBusy)
	}
	status := &review.Status
	switch {
	case !status.Authenticated:
		return who, errors.New("the token is not good: it is forged or has expired, or its pod is gone")
	case !slices.Contains(status.Audiences, Audience):
		return who, fmt.Errorf("the token is not meant for %s", Audience)
	}
	account, ok := strings.CutPrefix(status.User.Username, prefix)
	namespace, name, whole := strings.Cut(account, ":")
	if !ok || !whole {
		return who, errors.New("the token is no service account's")
	}
	who.Namespace, who.Pod, who.UID = namespace, first(status.User.Extra[extraPod]), first(status.User.Extra[extraUID])
	if who.Pod == "" || who.UID == "" {
		return who, errors.New("the token is not bound to a pod")
	}
	if who.Expiry, err = expiry(token); err != nil {
		return who, err
	}
	who.Namespaces, who.Gateway = r.Gateways[namespace+"/"+name]
	return who, r.look(ctx, &who)
}

// look takes a pod's labels over, if there is such a pod and it carries an enforcer.
func (r *Reviewer) look(ctx context.Context, who *distribution.Identity) error {
	var pod corev1.Pod
	err := r.Pods.Get(ctx, types.NamespacedName{Namespace: who.Namespace, Name: who.Pod}, &pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != who.UID:
		// A pod that is new may not be known here yet: the enforcer tries again.
		return errors.New("the token's pod is not there")
	case err != nil:
		return fmt.Errorf("%w: pods can't be read", distribution.ErrBusy)
	case !who.Gateway && !r.Carries(&pod):
		return errors.New("the token's pod carries no enforcer")
	}
	who.Labels = pod.Labels
	return nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// expiry reads when a token ends that the API server has found good.
func expiry(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, errors.New("the token does not say when it ends")
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	var ends struct {
		Seconds int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(claims, &ends) != nil || ends.Seconds == 0 {
		return time.Time{}, errors.New("the token does not say when it ends")
	}
	return time.Unix(ends.Seconds, 0), nil
}
