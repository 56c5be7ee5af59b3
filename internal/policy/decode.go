package policy

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// DecodePolicy reads a policy from JSON. Unknown and doubled fields, values of
// the wrong type and empty texts where one may be left out are errors that name
// the field. With such an error comes whatever could be read.
func DecodePolicy(data []byte) (*v1alpha1.RateLimitPolicy, error) {
	p := &v1alpha1.RateLimitPolicy{}
	return p, decodeStrict(data, p, func() any { return p.Spec })
}

// DecodeBackend reads a backend from JSON, as DecodePolicy does a policy.
func DecodeBackend(data []byte) (*v1alpha1.RedisBackend, error) {
	b := &v1alpha1.RedisBackend{}
	return b, decodeStrict(data, b, func() any { return b.Spec })
}

func decodeStrict(data []byte, into any, spec func() any) error {
	strict, err := json.UnmarshalStrict(data, into)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	empty, err := emptyTexts(data, spec(), reported(strict))
	return errors.Join(append(append(strict, empty...), err)...)
}

// reported lists the paths of fields that are known to be wrong.
func reported(strict []error) map[string]bool {
	paths := map[string]bool{}
	for _, err := range strict {
		var at json.FieldError
		if errors.As(err, &at) {
			paths[at.FieldPath()] = true
		}
	}
	return paths
}

// emptyTexts finds the texts of a spec that are there but empty, and that nobody
// can tell from absent ones once they are decoded. The CRD's schema refuses them.
func emptyTexts(data []byte, decoded any, skip map[string]bool) ([]error, error) {
	var written struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &written); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	kept, err := asTree(decoded)
	if err != nil {
		return nil, err
	}
	return lostTexts(field.NewPath("spec"), written.Spec, kept, skip), nil
}

func asTree(v any) (tree map[string]any, err error) {
	text, err := stdjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return tree, json.UnmarshalCaseSensitivePreserveInts(text, &tree)
}

// lostTexts finds the empty texts that are in one tree and not in the other.
func lostTexts(path *field.Path, written, kept any, skip map[string]bool) (lost []error) {
	switch written := written.(type) {
	case map[string]any:
		kept, _ := kept.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(written)) {
			child := path.Child(name)
			if skip[child.String()] {
				continue
			}
			value, still := kept[name]
			if written[name] == "" && !still {
				lost = append(lost, field.Invalid(child, "", "leave the field out, or write a value"))
			}
			lost = append(lost, lostTexts(child, written[name], value, skip)...)
		}
	case []any:
		kept, _ := kept.([]any)
		for i := range min(len(written), len(kept)) {
			lost = append(lost, lostTexts(path.Index(i), written[i], kept[i], skip)...)
		}
	}
	return lost
}
