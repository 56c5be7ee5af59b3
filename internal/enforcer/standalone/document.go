package standalone

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/policy"
)

// Objects are all that files hold.
type Objects struct {
	Policies   map[policy.Name]*v1alpha1.RateLimitPolicy
	Backends   map[policy.Name]*v1alpha1.RedisBackend
	secrets    map[policy.Name]map[string][]byte
	configMaps map[policy.Name]map[string][]byte
	places     map[string]*document // by kind, namespace and name
}

func newObjects() *Objects {
	return &Objects{
		Policies:   map[policy.Name]*v1alpha1.RateLimitPolicy{},
		Backends:   map[policy.Name]*v1alpha1.RedisBackend{},
		secrets:    map[policy.Name]map[string][]byte{},
		configMaps: map[policy.Name]map[string][]byte{},
		places:     map[string]*document{},
	}
}

// document is one YAML document of a file.
type document struct {
	file string
	root *yaml.Node
	kind string
	name policy.Name
}

// header is what every document has.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// defaultNamespace is the namespace of documents that name none.
const defaultNamespace = "default"

// add reads one document and says what is wrong with it.
func (o *Objects) add(d *document) Problems {
	if room := maxFile; !fits(d.root, &room) {
		return Problems{d.problem("", "written out, its aliases (*name) make more than 4 MiB: use fewer")}
	}
	var content any
	if err := d.root.Decode(&content); err != nil {
		return Problems{yamlProblem(d.file, err)}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return Problems{d.problem("", "write every key as a text")}
	}
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return d.decodeProblems(err)
	}
	d.kind = h.Kind
	d.name = policy.Name{Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
	if d.name.Namespace == "" {
		d.name.Namespace = defaultNamespace
	}
	if problem, ok := o.place(d, h); !ok {
		return Problems{problem}
	}
	switch h.APIVersion + " " + h.Kind {
	case v1alpha1.GroupVersion.String() + " " + v1alpha1.KindRateLimitPolicy:
		return o.addPolicy(d, data)
	case v1alpha1.GroupVersion.String() + " " + v1alpha1.KindRedisBackend:
		return o.addBackend(d, data)
	case "v1 Secret":
		return o.addSecret(d, data)
	case "v1 ConfigMap":
		return o.addConfigMap(d, data)
	}
	if strings.HasPrefix(h.APIVersion, v1alpha1.GroupVersion.Group) || h.Kind == v1alpha1.KindRateLimitPolicy || h.Kind == v1alpha1.KindRedisBackend {
		return Problems{d.problem("kind", fmt.Sprintf("unknown kind %q of %q: write RateLimitPolicy or RedisBackend of weir.dev/v1alpha1", h.Kind, h.APIVersion))}
	}
	ignored := d.problem("kind", fmt.Sprintf("%s %s is ignored: Weir reads RateLimitPolicy, RedisBackend, Secret and ConfigMap", h.APIVersion, h.Kind))
	ignored.Warning = true
	return Problems{ignored}
}

// fits tells that a node, with its aliases written out, takes no more room than
// there is, in bytes. An alias of what holds it never fits.
func fits(node *yaml.Node, room *int) bool {
	if *room -= 1 + len(node.Value); *room < 0 {
		return false
	}
	if node.Kind == yaml.AliasNode {
		return fits(node.Alias, room)
	}
	for _, child := range node.Content {
		if !fits(child, room) {
			return false
		}
	}
	return true
}

// place refuses documents without a name and second ones of the same name.
func (o *Objects) place(d *document, h header) (Problem, bool) {
	switch {
	case h.Kind == "":
		return d.problem("kind", "write a kind, such as RateLimitPolicy"), false
	case d.name.Name == "":
		return d.problem("metadata.name", "write a name"), false
	}
	key := h.Kind + " " + d.name.String()
	if other := o.places[key]; other != nil {
		return d.problem("metadata.name", fmt.Sprintf("%s stands at %s:%d already", key, other.file, other.root.Line)), false
	}
	o.places[key] = d
	return Problem{}, true
}

func (o *Objects) addPolicy(d *document, data []byte) (problems Problems) {
	p, err := policy.DecodePolicy(data)
	if err != nil {
		problems = d.decodeProblems(err)
		if !isStrict(err) {
			return problems
		}
	}
	p.Namespace, p.Name = d.name.Namespace, d.name.Name
	o.Policies[d.name] = p
	problems = append(problems, d.fieldProblems(policy.ValidatePolicy(p))...)
	if len(problems) == 0 {
		for _, text := range policy.Warnings(p) {
			warning := d.problem("spec.rules", text)
			warning.Warning = true
			problems = append(problems, warning)
		}
	}
	return problems
}

func (o *Objects) addBackend(d *document, data []byte) (problems Problems) {
	b, err := policy.DecodeBackend(data)
	if err != nil {
		problems = d.decodeProblems(err)
		if !isStrict(err) {
			return problems
		}
	}
	b.Namespace, b.Name = d.name.Namespace, d.name.Name
	o.Backends[d.name] = b
	return append(problems, d.fieldProblems(policy.ValidateBackend(b))...)
}

func (o *Objects) addSecret(d *document, data []byte) Problems {
	var s corev1.Secret
	if err := json.Unmarshal(data, &s); err != nil {
		return Problems{d.problem("data", "write the values of data in base64, or as they are under stringData")}
	}
	values := map[string][]byte{}
	for key, value := range s.Data {
		values[key] = value
	}
	for key, value := range s.StringData {
		values[key] = []byte(value)
	}
	o.secrets[d.name] = values
	return nil
}

func (o *Objects) addConfigMap(d *document, data []byte) Problems {
	var c corev1.ConfigMap
	if err := json.Unmarshal(data, &c); err != nil {
		return d.decodeProblems(err)
	}
	values := map[string][]byte{}
	for key, value := range c.Data {
		values[key] = []byte(value)
	}
	o.configMaps[d.name] = values
	return nil
}

// problem is a problem with a field of the document.
func (d *document) problem(path, message string) Problem {
	return Problem{File: d.file, Line: lineOf(d.root, path), Field: path, Message: message}
}

func (d *document) fieldProblems(errs field.ErrorList) (problems Problems) {
	for _, err := range errs {
		problems = append(problems, d.problem(err.Field, err.ErrorBody()))
	}
	return problems
}

var (
	unknownField = regexp.MustCompile(`^(unknown|duplicate) field "([^"]+)"$`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\S+).* into Go struct field \S*?\.(\S+) of type (\S+)`)
)

// isStrict tells that the document was decoded, and only has fields too many.
func isStrict(err error) bool {
	var joined interface{ Unwrap() []error }
	return errors.As(err, &joined)
}

// decodeProblems says in a user's words what the JSON decoder said.
func (d *document) decodeProblems(err error) (problems Problems) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, one := range joined.Unwrap() {
			problems = append(problems, d.decodeProblem(one))
		}
		return problems
	}
	return Problems{d.decodeProblem(err)}
}

func (d *document) decodeProblem(err error) Problem {
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		return d.problem(m[2], m[1]+" field: check the spelling and the indentation")
	}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		return d.problem(m[2], fmt.Sprintf("write %s, not a %s", typeName(m[3]), m[1]))
	}
	return d.problem("", err.Error())
}

// typeName says a Go type in a user's words.
func typeName(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "a whole number"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case goType == "bool":
		return "true or false"
	case goType == "string" || strings.HasPrefix(goType, "v1alpha1.") && !strings.HasSuffix(goType, "Spec"):
		return "a text"
	}
	return "a mapping"
}

// lineOf finds the line of a field such as spec.rules[0].window; of what is not
// there, the line of what should hold it.
func lineOf(node *yaml.Node, path string) int {
	line := node.Line
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		key, next := child(node, step)
		if next == nil {
			return line
		}
		line, node = key.Line, next
	}
	return line
}

// child is an entry of a mapping or a sequence, and the node whose line is its.
func child(node *yaml.Node, step string) (key, value *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if index, err := strconv.Atoi(step); err == nil {
			if index >= 0 && index < len(node.Content) {
				return node.Content[index], node.Content[index]
			}
			return nil, nil
		}
		// Some messages name no index: the first entry that has the field.
		for _, entry := range node.Content {
			if key, value := child(entry, step); value != nil {
				return key, value
			}
		}
	}
	return nil, nil
}
