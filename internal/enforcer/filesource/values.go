package filesource

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// secret is a core/v1 Secret; importing that package would cost a fresh build
// half a minute.
type secret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Type              string            `json:"type"`
	Immutable         *bool             `json:"immutable"`
	Data              map[string][]byte `json:"data"`
	StringData        map[string]string `json:"stringData"`
}

// values merges stringData over data, as the API server does.
func (s *secret) values() map[string][]byte { return merge(s.Data, s.StringData) }

// configMap is a core/v1 ConfigMap.
type configMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Immutable         *bool             `json:"immutable"`
	Data              map[string]string `json:"data"`
	BinaryData        map[string][]byte `json:"binaryData"`
}

func (c *configMap) values() map[string][]byte { return merge(c.BinaryData, c.Data) }

func merge(binary map[string][]byte, text map[string]string) map[string][]byte {
	merged := maps.Clone(binary)
	if merged == nil {
		merged = map[string][]byte{}
	}
	for key, value := range text {
		merged[key] = []byte(value)
	}
	return merged
}

// unmarshal reads a Secret or a ConfigMap. It never lets a value into its error.
func unmarshal[T any](text []byte) (*T, error) {
	into := new(T)
	strict, err := kjson.UnmarshalStrict(text, into)
	if wrong := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &wrong) {
		return into, errors.Join(unreadable(text)...)
	}
	return into, errors.Join(append(strict, err)...)
}

// unreadable finds the values that keep a text from being read.
func unreadable(text []byte) []error {
	var all struct {
		Data       map[string]any `json:"data"`
		BinaryData map[string]any `json:"binaryData"`
	}
	_ = json.Unmarshal(text, &all)
	errs := []error{}
	for field, values := range map[string]map[string]any{"data": all.Data, "binaryData": all.BinaryData} {
		for key, value := range values {
			encoded, _ := value.(string)
			if _, err := base64.StdEncoding.DecodeString(encoded); err != nil {
				errs = append(errs, base64Error{field + "." + key})
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	if len(errs) == 0 {
		errs = append(errs, errors.New("a value can't be read"))
	}
	return errs
}

// base64Error is a value that is not base64 and should be.
type base64Error struct{ path string }

func (e base64Error) Error() string { return e.path + ": " + e.mend() }
func (base64Error) mend() string    { return "write base64, or plain text under stringData" }
