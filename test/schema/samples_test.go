package schema

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	splitter "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

const sampleDir = "../../config/samples"

// sample is one file of samples.
type sample struct {
	file     string
	policies []*v1alpha1.RateLimitPolicy
	backends []*v1alpha1.RedisBackend
	secrets  []secret
}

type secret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	StringData        map[string]string `json:"stringData"`
}

// samples reads and judges every sample.
func samples(t *testing.T) []sample {
	t.Helper()
	judges := map[string]*judges{"RateLimitPolicy": judge(t, "RateLimitPolicy"), "RedisBackend": judge(t, "RedisBackend")}
	var all []sample
	err := filepath.WalkDir(sampleDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(text, []byte("# ")) {
			t.Errorf("%s does not begin with what it teaches", path)
		}
		s := sample{file: path}
		for _, document := range split(t, text) {
			s.add(t, judges, document)
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// split takes a file apart into documents, as JSON.
func split(t *testing.T, text []byte) (documents [][]byte) {
	t.Helper()
	reader := splitter.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err == nil {
			document, err = yaml.YAMLToJSONStrict(document)
		}
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
}

func (s *sample) add(t *testing.T, judges map[string]*judges, document []byte) {
	t.Helper()
	var of metav1.TypeMeta
	if err := yaml.Unmarshal(document, &of); err != nil {
		t.Fatal(err)
	}
	if j := judges[of.Kind]; j != nil {
		refusals, err := j.crd.Refusals(t.Context(), document)
		invalid, decoding := j.read(document)
		if err := errors.Join(err, refusals.ToAggregate(), invalid.ToAggregate(), decoding); err != nil {
			t.Fatalf("%s: %v", s.file, err)
		}
	}
	switch of.Kind {
	case v1alpha1.KindRateLimitPolicy:
		p, err := policy.DecodePolicy(document)
		if err != nil {
			t.Fatal(err)
		}
		s.policies = append(s.policies, p)
	case v1alpha1.KindRedisBackend:
		b, err := policy.DecodeBackend(document)
		if err != nil {
			t.Fatal(err)
		}
		s.backends = append(s.backends, b)
	case "Secret":
		var found secret
		if err := yaml.UnmarshalStrict(document, &found); err != nil {
			t.Fatalf("%s: %v", s.file, err)
		}
		s.secrets = append(s.secrets, found)
	default:
		t.Errorf("%s holds a %s", s.file, of.Kind)
	}
}

func TestSamplesWarnOfNothing(t *testing.T) {
	for _, s := range samples(t) {
		for _, p := range s.policies {
			for _, warning := range policy.Warnings(p) {
				t.Errorf("%s: %s", s.file, warning)
			}
		}
	}
}

func TestSamplesMatchAHostOfTheirOwn(t *testing.T) {
	owner := map[string]string{}
	for _, s := range samples(t) {
		if strings.Contains(s.file, "quickstart") {
			continue
		}
		for _, p := range s.policies {
			host := p.Name + ".example.com"
			if owner[host] != "" {
				t.Errorf("%s and %s are for %s", s.file, owner[host], host)
			}
			owner[host] = s.file
			for _, r := range p.Spec.Rules {
				if r.Match == nil || len(r.Match.Hosts) != 1 || r.Match.Hosts[0] != host {
					t.Errorf("%s: rule %s is not for %s alone", s.file, r.Name, host)
				}
			}
		}
	}
}

func TestTheQuickstartLimitsUsersOfAnyHost(t *testing.T) {
	var found []*v1alpha1.RateLimitPolicy
	backends := map[string]v1alpha1.RedisMode{}
	for _, s := range samples(t) {
		if strings.Contains(s.file, "quickstart") {
			found = append(found, s.policies...)
			for _, b := range s.backends {
				backends[b.Namespace+"/"+b.Name] = b.Spec.Mode
			}
		}
	}
	if len(found) != 1 || found[0].Namespace+"/"+found[0].Name != "shop/storefront" || len(backends) != 1 || backends["shop/default"] != v1alpha1.RedisStandalone {
		t.Fatalf("policies %v, backends %v", found, backends)
	}
	rules := found[0].Spec.Rules
	if r := rules[0]; r.Name != "per-user" || *r.Limit != 100 || r.Window != "1m" || len(r.Key) != 1 || r.Key[0].Name != "X-User-Id" {
		t.Errorf("the first rule is %+v", r)
	}
	for _, r := range rules {
		if r.Match != nil || *r.Limit < 100 {
			t.Errorf("rule %s stands in the way of 100 requests", r.Name)
		}
	}
}

// TestSampleBackendsAreComplete: each mode, TLS, and every Secret that is named is
// in the same file, with nothing in it that could pass for real.
func TestSampleBackendsAreComplete(t *testing.T) {
	modes := map[v1alpha1.RedisMode]bool{}
	tls := false
	for _, s := range samples(t) {
		held := map[string]bool{}
		for _, found := range s.secrets {
			held[found.Namespace+"/"+found.Name] = true
			for name, value := range found.StringData {
				if value != "replace-me" && name != "username" {
					t.Errorf("%s: %s of Secret %s is not a placeholder", s.file, name, found.Name)
				}
			}
		}
		for _, b := range s.backends {
			modes[b.Spec.Mode] = true
			tls = tls || b.Spec.TLS != nil
			for _, ref := range secretsOf(&b.Spec) {
				if !held[b.Namespace+"/"+ref] {
					t.Errorf("%s names Secret %s, which is not in it", s.file, ref)
				}
			}
		}
	}
	if len(modes) != 3 || !tls {
		t.Errorf("samples show modes %v, TLS %v", modes, tls)
	}
}

func secretsOf(spec *v1alpha1.RedisBackendSpec) (names []string) {
	refs := []*v1alpha1.LocalRef{spec.CredentialsSecretRef, spec.HashKeySecretRef}
	if spec.Sentinel != nil {
		refs = append(refs, spec.Sentinel.CredentialsSecretRef)
	}
	if spec.TLS != nil {
		refs = append(refs, spec.TLS.CASecretRef, spec.TLS.CertSecretRef)
	}
	for _, ref := range refs {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	return names
}
