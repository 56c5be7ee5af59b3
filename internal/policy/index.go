package policy

import "strings"

// formIndex holds the rules of policies that read paths alike: by host, then by
// path, then by method.
type formIndex struct {
	form   pathForm
	hosts  map[string]*pathIndex
	suffix map[string]*pathIndex // ".example.com" for *.example.com
	labels int                   // of the longest suffix
	any    *pathIndex
}

// pathIndex holds the rules of one host.
type pathIndex struct {
	exact    map[string]*leaf
	prefixes map[string]*leaf // without slash at the end
	depth    int              // segments of the longest prefix
	patterns []*patternLeaf
	any      leaf
}

// patternLeaf holds the rules of one regular expression.
type patternLeaf struct {
	pattern *pathPattern
	leaf    leaf
}

// leaf holds the rules of one path by method.
type leaf struct {
	methods map[string][]int32
	any     []int32
}

func newFormIndex(form pathForm) *formIndex {
	return &formIndex{form: form, hosts: map[string]*pathIndex{}, suffix: map[string]*pathIndex{}, any: newPathIndex()}
}

func newPathIndex() *pathIndex {
	return &pathIndex{exact: map[string]*leaf{}, prefixes: map[string]*leaf{}}
}

func (f *formIndex) add(rule *Rule) {
	m := &rule.compiled.match
	if len(m.hosts) == 0 {
		f.any.add(m, int32(rule.Index))
	}
	for _, host := range m.hosts {
		table, key := f.hosts, host
		if suffix, ok := strings.CutPrefix(host, "*"); ok {
			table, key = f.suffix, suffix
			f.labels = max(f.labels, strings.Count(suffix, "."))
		}
		if table[key] == nil {
			table[key] = newPathIndex()
		}
		table[key].add(m, int32(rule.Index))
	}
}

func (p *pathIndex) add(c *conditions, rule int32) {
	methods := c.indexedMethods()
	if c.paths() == 0 {
		p.any.add(methods, rule)
	}
	for _, path := range c.exact {
		leafOf(p.exact, path).add(methods, rule)
	}
	for _, prefix := range c.prefixes {
		if prefix == "" {
			p.any.add(methods, rule)
			continue
		}
		p.depth = max(p.depth, strings.Count(prefix, "/"))
		leafOf(p.prefixes, prefix).add(methods, rule)
	}
	for _, pattern := range c.patterns {
		p.leafOfPattern(pattern).add(methods, rule)
	}
}

// leafOfPattern is the leaf of a regular expression, one for all rules with the
// same, so that it is run once a request.
func (p *pathIndex) leafOfPattern(pattern *pathPattern) *leaf {
	for _, known := range p.patterns {
		if known.pattern.expression.String() == pattern.expression.String() {
			return &known.leaf
		}
	}
	p.patterns = append(p.patterns, &patternLeaf{pattern: pattern})
	return &p.patterns[len(p.patterns)-1].leaf
}

func leafOf(table map[string]*leaf, key string) *leaf {
	if table[key] == nil {
		table[key] = &leaf{}
	}
	return table[key]
}

func (l *leaf) add(methods []string, rule int32) {
	if len(methods) == 0 {
		l.any = append(l.any, rule)
		return
	}
	if l.methods == nil {
		l.methods = map[string][]int32{}
	}
	for _, method := range methods {
		l.methods[method] = append(l.methods[method], rule)
	}
}

// find appends the rules that hold for host, path and method. A rule that holds
// in several ways is appended several times.
func (f *formIndex) find(found []int32, host, path, method string) []int32 {
	if p := f.hosts[host]; p != nil {
		found = p.find(found, path, method)
	}
	// From the right, and no deeper than the longest wildcard. What stands before
	// the dot must not be empty: * is one label or more.
	dot := len(host)
	for range f.labels {
		if dot = strings.LastIndexByte(host[:dot], '.'); dot <= 0 {
			break
		}
		if p := f.suffix[host[dot:]]; p != nil {
			found = p.find(found, path, method)
		}
	}
	return f.any.find(found, path, method)
}

func (p *pathIndex) find(found []int32, path, method string) []int32 {
	found = p.any.find(found, method)
	if l := p.exact[path]; l != nil {
		found = l.find(found, method)
	}
	for end, depth := 0, 0; depth < p.depth && end < len(path); depth++ {
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			end = len(path)
		} else {
			end += 1 + next
		}
		if l := p.prefixes[path[:end]]; l != nil {
			found = l.find(found, method)
		}
	}
	for _, l := range p.patterns {
		if l.leaf.has(method) && l.pattern.holds(path) {
			found = l.leaf.find(found, method)
		}
	}
	return found
}

func (l *leaf) find(found []int32, method string) []int32 {
	found = append(found, l.any...)
	if l.methods != nil {
		found = append(found, l.methods[method]...)
	}
	return found
}

// has tells that find would find something.
func (l *leaf) has(method string) bool {
	return len(l.any) > 0 || len(l.methods[method]) > 0
}
