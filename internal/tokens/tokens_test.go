package tokens

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/distribution"
	"github.com/weir-dev/weir/test/cluster"
)

func TestReviewerBelievesPodsTokensOnly(t *testing.T) {
	c := cluster.Start(t)
	c.Namespace("shop")
	c.Namespace("edge")
	carries := func(p *corev1.Pod) bool { return len(p.Spec.Containers) > 1 }
	r := &Reviewer{
		Reviews: c.Set.AuthenticationV1().TokenReviews(), Pods: c.Client, Carries: carries,
		Gateways: map[string][]string{"edge/default": {"shop"}},
	}
	web := c.Pod("shop", "web", map[string]string{"app": "web"}, "app", "weir")
	good := c.Token(web, Audience, time.Hour)
	gone := c.Pod("shop", "gone", nil, "app", "weir")
	ofGone := c.Token(gone, Audience, time.Hour)
	if err := c.Client.Delete(t.Context(), gone, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ reason, token, want string }{
		{"another audience", c.Token(web, "elsewhere", time.Hour), "the token is not good"},
		{"a forged signature", good[:len(good)-8] + "AAAAAAAA", "the token is not good"},
		{"no token at all", "moon", "the token is not good"},
		{"a service account's without a pod", accountToken(t, c), "the token is not bound to a pod"},
		{"a pod without an enforcer", c.Token(c.Pod("shop", "bare", nil, "app"), Audience, time.Hour), "the token's pod carries no enforcer"},
		{"a pod that is gone", ofGone, "the token is not good"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			who, err := r.Authenticate(t.Context(), test.token)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), test.token) {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
	who, err := r.Authenticate(t.Context(), good)
	if err != nil || who.Namespace != "shop" || who.Pod != "web" || who.UID != string(web.UID) || who.Labels["app"] != "web" || who.Gateway {
		t.Errorf("a pod's own token: %+v, %v", who, err)
	}
	if left := time.Until(who.Expiry); left < 50*time.Minute || left > time.Hour {
		t.Errorf("it ends in %v", left)
	}
	who, err = r.Authenticate(t.Context(), c.Token(c.Pod("edge", "door", nil, "gateway"), Audience, time.Hour))
	if err != nil || !who.Gateway || len(who.Namespaces) != 1 {
		t.Errorf("a gateway's token: %+v, %v", who, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Authenticate(ended, good); !errors.Is(err, distribution.ErrBusy) {
		t.Errorf("without an API server: %v", err)
	}
}

// accountToken is bound to no pod.
func accountToken(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{Audience}}}
	got, err := c.Set.CoreV1().ServiceAccounts("shop").CreateToken(t.Context(), "default", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Token
}
