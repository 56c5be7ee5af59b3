package policy

import (
	"errors"
	"fmt"

	"sigs.k8s.io/json"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// DecodePolicy reads a policy from JSON. Unknown and doubled fields, and values
// of the wrong type, are errors that name the field.
func DecodePolicy(data []byte) (*v1alpha1.RateLimitPolicy, error) {
	p := &v1alpha1.RateLimitPolicy{}
	return p, decodeStrict(data, p)
}

// DecodeBackend reads a backend from JSON, as DecodePolicy does a policy.
func DecodeBackend(data []byte) (*v1alpha1.RedisBackend, error) {
	b := &v1alpha1.RedisBackend{}
	return b, decodeStrict(data, b)
}

func decodeStrict(data []byte, into any) error {
	strict, err := json.UnmarshalStrict(data, into)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return errors.Join(strict...)
}
