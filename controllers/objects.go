package controllers

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// newPolicy is an object to read a policy into. What is stored may be no valid
// policy, so it is taken as it is and decoded later.
func newPolicy() *unstructured.Unstructured { return ofKind("RateLimitPolicy") }

func newBackend() *unstructured.Unstructured { return ofKind("RedisBackend") }

func ofKind(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return u
}

func listOf(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	return list
}

func nameOf(u *unstructured.Unstructured) policy.Name {
	return policy.Name{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// decodePolicy returns a policy's spec, or what is wrong with it. What could be read
// comes with the error.
func decodePolicy(u *unstructured.Unstructured) (*v1alpha1.RateLimitPolicy, error) {
	data, err := specOf(u)
	if err != nil {
		return &v1alpha1.RateLimitPolicy{}, err
	}
	p, err := policy.DecodePolicy(data)
	if err != nil {
		return p, err
	}
	return p, policy.ValidatePolicy(p).ToAggregate()
}

func decodeBackend(u *unstructured.Unstructured) (*v1alpha1.RedisBackend, error) {
	data, err := specOf(u)
	if err != nil {
		return &v1alpha1.RedisBackend{}, err
	}
	b, err := policy.DecodeBackend(data)
	if err != nil {
		return b, err
	}
	return b, policy.ValidateBackend(b).ToAggregate()
}

// validBackend is decodeBackend where the reason does not matter.
func validBackend(u *unstructured.Unstructured) (*v1alpha1.RedisBackend, bool) {
	b, err := decodeBackend(u)
	return b, err == nil
}

// specOf is an object without what only a server knows.
func specOf(u *unstructured.Unstructured) ([]byte, error) {
	spec, ok := u.Object["spec"]
	if !ok {
		return nil, errors.New("spec: there is none")
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"namespace": u.GetNamespace(), "name": u.GetName(), "generation": u.GetGeneration()},
		"spec":     spec,
	})
}

// statusOf reads an object's status. One that can't be read is as good as none.
func statusOf[T any](u *unstructured.Unstructured) (status T) {
	if stored, ok := u.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, &status); err != nil {
			return *new(T)
		}
	}
	return status
}

// setStatus puts a status into an object.
func setStatus(u *unstructured.Unstructured, status any) error {
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	u.Object["status"] = converted
	return nil
}
