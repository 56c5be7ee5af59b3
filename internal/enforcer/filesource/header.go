package filesource

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// header is what tells what a document is. An empty kind means that it is of no
// concern here, and ignored says so.
type header struct {
	kind    string
	name    policy.Name
	ignored string
}

func (d *document) header() (header, Problems) {
	var h struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	source := Source{d}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(json.Unmarshal(d.json, &h), &wrong) {
		path, _ := removeAt(d.json, wrong.Offset)
		return header{}, Problems{source.At(path, typeMessage(wrong))}
	}
	kind, ignored, problem := classify(source, h.APIVersion, h.Kind)
	if problem != nil {
		return header{}, Problems{*problem}
	}
	if kind == "" {
		return header{ignored: ignored}, nil
	}
	if h.Metadata.Namespace == "" {
		h.Metadata.Namespace = defaultNamespace
	}
	var problems Problems
	if h.Metadata.Name == "" {
		problems = append(problems, source.At("metadata.name", "write a name: lower-case letters, digits, dashes and dots"))
	} else if len(validation.IsDNS1123Subdomain(h.Metadata.Name)) > 0 {
		problems = append(problems, source.At("metadata.name", fmt.Sprintf("%q is no name: write lower-case letters, digits, dashes and dots, with a letter or digit at both ends", h.Metadata.Name)))
	}
	if len(validation.IsDNS1123Label(h.Metadata.Namespace)) > 0 {
		problems = append(problems, source.At("metadata.namespace", fmt.Sprintf("%q is no namespace: write lower-case letters, digits and dashes, with a letter or digit at both ends", h.Metadata.Namespace)))
	}
	return header{kind: kind, name: policy.Name{Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}}, problems
}

var (
	ours   = []string{kindPolicy, kindBackend}
	theirs = []string{kindSecret, kindConfigMap}
)

// classify tells which kind a document is of. What could be meant for Weir is
// never ignored: a typo must not be a way to lose a limit.
func classify(source Source, apiVersion, kind string) (known, ignored string, problem *Problem) {
	want := v1alpha1.GroupVersion.String()
	group, _, _ := strings.Cut(apiVersion, "/")
	refuse := func(field, message string) (string, string, *Problem) {
		p := source.At(field, message)
		return "", "", &p
	}
	isOurs := func(k string) bool { return strings.EqualFold(k, kind) }
	switch {
	case apiVersion == "":
		return refuse("apiVersion", fmt.Sprintf("write apiVersion: %s for a %s or %s, v1 for a Secret or ConfigMap", want, kindPolicy, kindBackend))
	case kind == "":
		return refuse("kind", fmt.Sprintf("write a kind: %s, %s, Secret or ConfigMap", kindPolicy, kindBackend))
	case apiVersion == want && slices.Contains(ours, kind):
		return kind, "", nil
	case slices.ContainsFunc(ours, isOurs) && apiVersion != want:
		return refuse("apiVersion", fmt.Sprintf("%q is not Weir's: write %s, or keep the document elsewhere", apiVersion, want))
	case group == v1alpha1.GroupVersion.Group && apiVersion != want:
		return refuse("apiVersion", fmt.Sprintf("%q is not known: write %s", apiVersion, want))
	case apiVersion == want:
		return refuse("kind", fmt.Sprintf("%q is not known: write %s or %s", kind, kindPolicy, kindBackend))
	case slices.Contains(theirs, kind) && apiVersion == "v1":
		return kind, "", nil
	case slices.Contains(theirs, kind):
		return refuse("apiVersion", fmt.Sprintf("%q is not that of a %s: write v1", apiVersion, kind))
	case strings.HasSuffix(kind, "List"):
		return refuse("kind", "lists are not read: write each item as a document of its own, with --- between them")
	}
	return "", fmt.Sprintf("%s %s is ignored: only %s, %s, Secret and ConfigMap are read", apiVersion, kind, kindPolicy, kindBackend), nil
}
