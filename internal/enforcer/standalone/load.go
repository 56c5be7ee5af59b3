package standalone

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-dev/weir/internal/policy"
)

// maxFile is how large a file may be, in bytes.
const maxFile = 4 << 20

// Problem is something wrong with a file.
type Problem struct {
	File    string
	Line    int    // 0 where it is not known
	Field   string // such as spec.rules[0].window; may be empty
	Message string
	// Warning tells that the file can be used all the same.
	Warning bool
}

// String is file:line: field: message.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are what is wrong with some files.
type Problems []Problem //nolint:errname // they are listed far more often than returned as an error

// Errors are the problems that keep the files from being used.
func (p Problems) Errors() Problems {
	return slices.DeleteFunc(slices.Clone(p), func(q Problem) bool { return q.Warning })
}

// Error lists them, a line each.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// file is one file's name and content.
type file struct {
	name string
	data []byte
}

// readFiles reads a file, or the YAML and JSON files of a folder. "-" is the
// standard input.
func readFiles(path string, stdin io.Reader) ([]file, error) {
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, maxFile+1))
		return []file{{"standard input", data}}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	if !info.IsDir() {
		f, err := readFile(path)
		return []file{f}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	var files []file
	for _, entry := range entries {
		name := entry.Name()
		extension := strings.ToLower(filepath.Ext(name))
		if strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
			continue
		}
		full := filepath.Join(path, name)
		if info, err := os.Stat(full); err == nil && info.IsDir() {
			continue
		}
		f, err := readFile(full)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func readFile(path string) (file, error) {
	f, err := os.Open(path)
	if err != nil {
		return file{}, fmt.Errorf("read policies: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return file{}, fmt.Errorf("read policies: %w", err)
	}
	return file{path, data}, nil
}

// Load reads and checks files or folders. The objects are complete only if the
// problems hold no error.
func Load(paths []string, stdin io.Reader) (*Objects, Problems) {
	objects := newObjects()
	var problems Problems
	for _, path := range paths {
		files, err := readFiles(path, stdin)
		if err != nil {
			problems = append(problems, Problem{File: path, Message: err.Error()})
		}
		for _, f := range files {
			problems = append(problems, objects.parse(f)...)
		}
	}
	return objects, problems
}

// parse adds the documents of one file.
func (o *Objects) parse(f file) (problems Problems) {
	if len(f.data) > maxFile {
		return Problems{{File: f.name, Message: "the file is larger than 4 MiB: split it"}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(f.data))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return problems
		}
		if err != nil {
			return append(problems, yamlProblem(f.name, err))
		}
		if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
			continue
		}
		problems = append(problems, o.add(&document{file: f.name, root: root.Content[0]})...)
	}
}

// yamlProblem takes the line out of what the YAML library says.
func yamlProblem(name string, err error) Problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	message = strings.TrimSpace(strings.TrimPrefix(message, "unmarshal errors:"))
	message, _, _ = strings.Cut(message, "\n")
	problem := Problem{File: name, Message: message}
	if _, scanErr := fmt.Sscanf(message, "line %d:", &problem.Line); scanErr == nil {
		_, problem.Message, _ = strings.Cut(message, ": ")
	}
	if !slices.ContainsFunc(safeMessages, func(start string) bool { return strings.HasPrefix(problem.Message, start) }) {
		problem.Message = "the YAML cannot be read here: put quotes around texts that begin with *, & or !"
	}
	return problem
}

// safeMessages are how those messages of the YAML library begin that speak of its
// syntax. Others may repeat a value, which may be a Secret's.
var safeMessages = []string{"mapping key", "mapping values", "found ", "did not find", "could not find", "block "}

// sortedNames lists names for a message.
func sortedNames[V any](objects map[policy.Name]V) string {
	names := []string{}
	for name := range objects {
		names = append(names, name.String())
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
