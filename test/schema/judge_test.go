package schema

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/weir-dev/weir/internal/policy"
)

// judges are the two that must agree about the objects of a kind.
type judges struct {
	kind string
	crd  *CRD
	read func([]byte) (field.ErrorList, error)
}

func judge(t testing.TB, kind string) *judges {
	t.Helper()
	if kind == "RedisBackend" {
		return &judges{kind, backends(t), readBackend}
	}
	return &judges{kind, policies(t), readPolicy}
}

func readPolicy(text []byte) (field.ErrorList, error) {
	p, err := policy.DecodePolicy(text)
	if err != nil {
		return nil, err
	}
	errs := policy.ValidatePolicy(p)
	if len(errs) == 0 {
		_, err = policy.Compile(p, policy.Defaults{})
	}
	return errs, err
}

func readBackend(text []byte) (field.ErrorList, error) {
	b, err := policy.DecodeBackend(text)
	if err != nil {
		return nil, err
	}
	return policy.ValidateBackend(b), nil
}

// server says whether an API server would take the spec, and why not.
func (j *judges) server(t testing.TB, spec string) error {
	t.Helper()
	errs, err := j.crd.Refusals(t.Context(), manifest(j.kind, spec))
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return errs.ToAggregate()
}

// engine says whether internal/policy takes the spec, and which fields are wrong.
func (j *judges) engine(spec string) (wrong []string, err error) {
	errs, err := j.read(manifest(j.kind, spec))
	if err != nil {
		return decodingPaths(err), err
	}
	for _, err := range errs {
		wrong = append(wrong, err.Field)
	}
	return wrong, errs.ToAggregate()
}

// decodingPaths are the fields that a decoding error names. The position in a list
// is not known for a value of the wrong type.
func decodingPaths(err error) (paths []string) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		var wrongType *json.UnmarshalTypeError
		var unknown kjson.FieldError
		var invalid *field.Error
		switch {
		case errors.As(err, &wrongType):
			paths = append(paths, wrongType.Field)
		case errors.As(err, &unknown):
			paths = append(paths, unknown.FieldPath())
		case errors.As(err, &invalid):
			paths = append(paths, invalid.Field)
		}
	}
	return paths
}

var positions = regexp.MustCompile(`\[\d+\]`)

// want checks one row against both.
func (j *judges) want(t *testing.T, r row) {
	t.Helper()
	refused := j.server(t, r.spec)
	if (refused != nil) != (len(r.wrong) > 0) {
		t.Errorf("a server says %v\nof %s", refused, r.spec)
	}
	wrong, err := j.engine(r.spec)
	if (err != nil) != (len(r.wrong) > 0) {
		t.Errorf("internal/policy says %v\nof %s", err, r.spec)
	}
	want := slices.Clone(r.wrong)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		for i := range want {
			want[i] = positions.ReplaceAllString(want[i], "")
		}
	}
	if diff := cmp.Diff(want, wrong, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("wrong fields (-want +got):\n%s%v\nof %s", diff, err, r.spec)
	}
}

func TestServerAndEngineAgree(t *testing.T) {
	for kind, rows := range map[string][]row{
		"RateLimitPolicy": slices.Concat(policyRows(), ruleRows(), matchRows(), keyRows()),
		"RedisBackend":    backendRows(),
	} {
		both := judge(t, kind)
		for _, r := range rows {
			t.Run(kind+" "+r.reason, func(t *testing.T) { both.want(t, r) })
		}
	}
}
