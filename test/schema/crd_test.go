package schema

import (
	"path/filepath"
	"testing"
)

const crdDir = "../../config/crd"

func load(t testing.TB, file string) *CRD {
	t.Helper()
	crd, err := Load(filepath.Join(crdDir, file))
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

func policies(t testing.TB) *CRD { t.Helper(); return load(t, "weir.dev_ratelimitpolicies.yaml") }
func backends(t testing.TB) *CRD { t.Helper(); return load(t, "weir.dev_redisbackends.yaml") }

func TestAServerTakesTheCRDs(t *testing.T) {
	for name, crd := range map[string]*CRD{"policies": policies(t), "backends": backends(t)} {
		for _, err := range crd.Problems(t.Context()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
