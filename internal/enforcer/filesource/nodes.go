package filesource

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxNesting is more than any object has, and keeps recursion short.
	maxNesting = 100
	// maxKey and maxReports bound what is said about a document.
	maxKey     = 128
	maxReports = 20
)

// checker goes through a document's nodes before anything is made of them.
type checker struct {
	*document
	problems Problems
	sizes    map[*yaml.Node]int // of anchored nodes, written out
	within   map[*yaml.Node]bool
}

// place is where a node stands. Its text is made for problems only.
type place struct {
	parent *place
	key    string
	index  int
	depth  int
}

func (p *place) field(key string) *place { return &place{parent: p, key: key, depth: p.depth + 1} }
func (p *place) item(i int) *place       { return &place{parent: p, index: i, depth: p.depth + 1} }

func (p *place) String() string {
	switch {
	case p.parent == nil:
		return ""
	case p.key == "":
		return p.parent.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.parent.parent == nil:
		return short(p.key)
	}
	return p.parent.String() + "." + short(p.key)
}

// short cuts keys that are no fields of anything.
func short(key string) string {
	if len(key) > maxKey {
		return strings.ToValidUTF8(key[:maxKey], "") + "…"
	}
	return key
}

// check finds keys that stand twice, and what would grow without bounds.
func (d *document) check(root *yaml.Node) Problems {
	c := &checker{document: d, sizes: map[*yaml.Node]int{}, within: map[*yaml.Node]bool{}}
	if size := c.size(root, &place{}); size > maxExpandedBytes && len(c.problems) == 0 {
		c.report(root, &place{}, fmt.Sprintf("with its aliases written out the document is larger than %d MiB", maxExpandedBytes>>20))
	}
	return c.problems
}

func (c *checker) report(n *yaml.Node, p *place, message string) {
	if len(c.problems) == maxReports {
		return
	}
	c.problems = append(c.problems, c.at(n, p.String(), message))
}

// size is about how many bytes of JSON a node makes. It stops growing at the
// bound.
func (c *checker) size(n *yaml.Node, p *place) int {
	if known, ok := c.sizes[n]; ok {
		return known
	}
	if n.Kind == yaml.AliasNode {
		if c.within[n.Alias] {
			c.report(n, p, "an alias stands within the value that it refers to")
			return 0
		}
		return c.size(n.Alias, p)
	}
	if p.depth > maxNesting {
		c.report(n, &place{}, fmt.Sprintf("nested deeper than %d levels", maxNesting))
		return 0
	}
	c.within[n] = true
	size := len(n.Value) + 4
	if n.Kind == yaml.MappingNode {
		size += c.mapping(n, p)
	} else {
		for i, item := range n.Content {
			size = min(size+c.size(item, p.item(i)), maxExpandedBytes+1)
		}
	}
	delete(c.within, n)
	if n.Anchor != "" {
		c.sizes[n] = size
	}
	return size
}

func (c *checker) mapping(n *yaml.Node, p *place) int {
	size, seen := 0, map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := p.field(key.Value)
		if first, ok := seen[key.Value]; ok && key.Kind == yaml.ScalarNode && key.Value != "<<" {
			c.report(key, at, fmt.Sprintf("stands twice, first in line %d; remove one", c.line(first)))
		} else {
			seen[key.Value] = key.Line
		}
		size = min(size+c.size(key, at)+c.size(value, at), maxExpandedBytes+1)
	}
	return size
}

// lineOf returns the line of a field, or of the nearest thing around it that is
// written down. An empty field means the document's first line.
func (d *document) lineOf(field string) int {
	n, line := d.root, d.root.Line
	for _, step := range steps(field) {
		key, value := child(n, step)
		if value == nil {
			break
		}
		n, line = value, key.Line
	}
	return d.line(line)
}

// steps takes a path such as spec.rules[0].window apart.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// child finds what a step leads to, and the node whose line it has.
func child(n *yaml.Node, step string) (key, value *yaml.Node) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && 0 <= i && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	}
	return nil, nil
}
