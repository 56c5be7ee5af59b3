package policy

import "github.com/weir-dev/weir/api/v1alpha1"

// view is one reading of a request: the request itself, or one of its
// descriptors, with the forms that are compared, each made when it is needed.
type view struct {
	req        *Request
	descriptor int // index in the request's descriptors, −1 for the request itself
	entries    []DescriptorEntry
	http       bool // there is an HTTP request to judge, whole or by attributes
	repeated   bool // an earlier descriptor was judged as HTTP in this call
	host       string
	paths      [pathForms]string // "" where not made yet

	// What the forms are made in; host and paths may refer to it.
	hostText, clean, folded []byte
	hostLine                [1]string
}

// open begins to read a request.
func (v *view) open(req *Request) {
	v.req = req
	v.host, v.hostText = cleanHost(v.hostText, req.Host)
	v.paths = [pathForms]string{}
}

// close lets go of the request.
func (v *view) close() {
	*v = view{hostText: kept(v.hostText), clean: kept(v.clean), folded: kept(v.folded)}
}

// header is the lines of a header. Host is one to those who write policies.
func (v *view) header(name string) []string {
	if name != "Host" || v.req.Host == "" {
		return v.req.Header[name]
	}
	v.hostLine[0] = v.req.Host
	return v.hostLine[:]
}

// path is the request's path in a form.
func (v *view) path(form pathForm) string {
	i := form.index()
	if v.paths[i] == "" {
		v.paths[i] = v.makePath(form)
	}
	return v.paths[i]
}

// makePath derives a form from the one that changes less: cleaned, then folded,
// then without the slash at the end.
func (v *view) makePath(form pathForm) string {
	switch {
	case !form.strictSlash:
		return trimSlash(v.path(pathForm{foldCase: form.foldCase, strictSlash: true}))
	case form.foldCase:
		path := v.path(pathForm{strictSlash: true})
		if !mayFold(path) {
			return path
		}
		v.folded = appendFolded(v.folded[:0], path)
		return textOf(v.folded)
	case isClean(v.req.Path):
		return v.req.Path
	}
	v.clean = appendClean(v.clean[:0], v.req.Path)
	return textOf(v.clean)
}

// carries tells that the view is a descriptor of exactly these entries in this
// order.
func (v *view) carries(match []v1alpha1.DescriptorMatch) bool {
	if len(match) != len(v.entries) || !opensToDescriptorRules(v.entries) {
		return false
	}
	for i := range match {
		if match[i].Key != v.entries[i].Key || match[i].Value != nil && *match[i].Value != v.entries[i].Value {
			return false
		}
	}
	return true
}

// maxScratch is how many bytes of one kind a Matcher keeps from one request to
// the next.
const maxScratch = 16 << 10

// kept is the buffer, unless a monstrous request made it grow.
func kept(buf []byte) []byte {
	if cap(buf) > maxScratch {
		return nil
	}
	return buf[:0]
}
