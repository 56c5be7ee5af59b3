package filesource

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// maxExpandedBytes bounds a document whose aliases are written out.
const maxExpandedBytes = 2 * maxFileBytes

// document is one YAML document. Its meaning is taken from json, which is made as
// kubectl makes it; the nodes only tell where things stand.
type document struct {
	file   string
	before int // lines of the file before the document's first
	lines  int // of the document
	root   *yaml.Node
	json   []byte
}

// Source is where an object stands in the files.
type Source struct {
	document *document
}

// At names a problem with a field of the object; an empty field means the object
// as a whole.
func (s Source) At(field, message string) Problem {
	return Problem{File: s.document.file, Line: s.document.lineOf(field), Field: field, Message: message}
}

// Place returns file:line.
func (s Source) Place() string {
	return s.document.file + ":" + strconv.Itoa(s.document.lineOf(""))
}

// parseFile takes a file apart. Empty documents are left out.
func parseFile(f File) ([]*document, Problems) {
	if f.unreadable != "" {
		return nil, Problems{{File: f.Name, Message: f.unreadable}}
	}
	var documents []*document
	var problems Problems
	for _, c := range split(f.Data) {
		d := &document{file: f.Name, before: c.before, lines: 1 + bytes.Count(c.text, []byte("\n"))}
		found := d.parse(c.text)
		problems = append(problems, found...)
		if len(found) == 0 && d.root != nil {
			documents = append(documents, d)
		}
	}
	return documents, problems
}

// chunk is the text of one document, its separator included.
type chunk struct {
	before int
	text   []byte
}

// split cuts a text before each line that begins a document.
func split(text []byte) []chunk {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	chunks := []chunk{{}}
	line := 0
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		if isSeparator(text[:end]) {
			chunks = append(chunks, chunk{before: line})
		}
		last := &chunks[len(chunks)-1]
		last.text = append(last.text, text[:end]...)
		text = text[end:]
		line++
	}
	return chunks
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// parse fills the document in. root stays nil when the text holds nothing.
func (d *document) parse(text []byte) Problems {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var top, second yaml.Node
	if err := decoder.Decode(&top); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return Problems{d.syntax(err, text)}
	}
	if err := decoder.Decode(&second); err == nil {
		return Problems{d.at(&second, "", "write --- on a line of its own between documents")}
	} else if !errors.Is(err, io.EOF) {
		return Problems{d.syntax(err, text)}
	}
	if len(top.Content) == 0 || isNull(top.Content[0]) {
		return nil
	}
	root := top.Content[0]
	if root.Kind != yaml.MappingNode {
		return Problems{d.at(root, "", "write an object with apiVersion, kind, metadata and spec")}
	}
	if problems := d.check(root); len(problems) > 0 {
		return problems
	}
	converted, err := kyaml.YAMLToJSON(text)
	if err != nil {
		return Problems{d.syntax(err, text)}
	}
	d.root, d.json = root, converted
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// at names a problem at a node.
func (d *document) at(n *yaml.Node, field, message string) Problem {
	return Problem{File: d.file, Line: d.line(n.Line), Field: field, Message: message}
}

// line is a line of the document in the file. The parser takes more characters
// for the end of a line than editors do.
func (d *document) line(n int) int { return d.before + min(n, d.lines) }

var (
	lineOfError = regexp.MustCompile(`line (\d+)(?:, column \d+)?: ?`)
	ofParser    = regexp.MustCompile("^did not find expected (<|',' or|key|'-' indicator|node content)")
	anchor      = regexp.MustCompile(`unknown anchor '([^']*)'`)
	// quoted is what a message cites of the text. It can be a part of a password.
	quoted = regexp.MustCompile("'[^']*'|`[^`]*`|\"[^\"]*\"|map key: .*")
	cited  = regexp.MustCompile("unknown anchor|cannot decode|invalid map key")
)

// syntax names a problem that the YAML parser found in a text.
func (d *document) syntax(err error, text []byte) Problem {
	message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	line := 1
	if at := lineOfError.FindStringSubmatchIndex(message); at != nil {
		line, _ = strconv.Atoi(message[at[2]:at[3]])
		message = message[:at[0]] + message[at[1]:]
		if ofParser.MatchString(message) {
			line++ // the parser counts from 0, unlike the scanner
		}
	} else if name := anchor.FindStringSubmatch(message); name != nil {
		before, _, _ := bytes.Cut(text, []byte("*"+name[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	}
	if cited.MatchString(message) {
		message = quoted.ReplaceAllString(message, "(not shown)")
	}
	return Problem{File: d.file, Line: d.line(line), Message: "not valid YAML: " + mend(message)}
}

// mend adds what to do to the messages that people meet most.
func mend(message string) string {
	hints := []struct{ part, hint string }{
		{"character that cannot start any token", "indent with spaces, not tabs, and put a value that begins with @, ` or % in quotes"},
		{"unknown anchor", "put a value that begins with * in quotes"},
		{"unexpected end of stream", "a quote is not closed"},
		{"unexpected document indicator", "a quote is not closed"},
		{"mapping values are not allowed", "put a value that contains a colon and a space in quotes, or mend the indentation"},
		{"did not find expected key", "mend the indentation, or close the quote or bracket"},
		{"could not find expected ':'", "write key: value, or mend the indentation"},
	}
	for _, h := range hints {
		if strings.Contains(message, h.part) {
			return message + "; " + h.hint
		}
	}
	return message
}
