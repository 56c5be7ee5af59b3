package policy

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// maxPattern is how many characters a regular expression may have.
const maxPattern = 256

// form is what a text must look like, and the words that say so.
type form struct {
	pattern *regexp.Regexp // nil takes any text
	longest int            // in characters
	mend    string
}

// The forms of texts in a spec. They say what the CRD's schema says.
var (
	nameForm      = form{regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`), 63, "write lower-case letters, digits and dashes, with a letter or digit at both ends"}
	namespaceForm = form{nameForm.pattern, 63, "write the name of a namespace: lower-case letters, digits and dashes"}
	objectForm    = form{regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`), 253, "write the name of an object: lower-case letters, digits, dashes and dots"}
	domainForm    = form{regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`), 63, "write letters, digits, dots, dashes and underscores, with a letter or digit at both ends"}
	tokenForm     = form{regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`), 128, "write a name of letters, digits and !#$%&'*+.^_|~-"}
	hostForm      = form{regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$|^\[[0-9a-f:.]+\]$`), 253, "write a host name in lower case without port, or a wildcard such as *.example.com"}
	methodForm    = form{regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`), 32, "write a method such as GET"}
	originForm    = form{regexp.MustCompile(`^(\*|[a-z][a-z0-9+.-]*://[a-z0-9._\[\]:-]+)$`), 260, "write an origin as browsers send it, such as https://shop.example.com, or *"}
	addressForm   = form{regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):[1-9][0-9]{0,4}$`), 260, "write host:port, with an IPv6 address in brackets"}
	prefixForm    = form{regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`), 32, "write letters, digits, dots, dashes and underscores"}
	serverForm    = form{regexp.MustCompile(`^[A-Za-z0-9._:-]+$`), 253, "write the host name or address that stands in the server's certificate"}
	masterForm    = form{nil, 128, "write the name under which the Sentinels watch the primary"}
	entryForm     = form{nil, 128, "write the key of a descriptor's entry"}
	pathText      = form{nil, 1024, "write a path such as /api"}
	patternForm   = form{nil, maxPattern, "write a regular expression in RE2 syntax"}
)

// checker collects what is wrong with a spec.
type checker struct {
	errs field.ErrorList
}

func (c *checker) invalid(path *field.Path, value any, mend string) {
	c.errs = append(c.errs, field.Invalid(path, value, mend))
}

func (c *checker) required(path *field.Path, mend string) {
	c.errs = append(c.errs, field.Required(path, mend))
}

func (c *checker) forbidden(path *field.Path, mend string) {
	c.errs = append(c.errs, field.Forbidden(path, mend))
}

// enum reports a value that is none of the known ones, and tells whether it is
// one. Empty is for absent and is reported only where a value is required.
func enum[T ~string](c *checker, path *field.Path, value T, known ...T) bool {
	if value == "" {
		return false
	}
	if !slices.Contains(known, value) {
		c.errs = append(c.errs, field.NotSupported(path, value, known))
		return false
	}
	return true
}

// choice is enum for a field that must be there.
func choice[T ~string](c *checker, path *field.Path, value T, known ...T) bool {
	if value == "" {
		c.required(path, "write "+oneOf(known))
	}
	return enum(c, path, value, known...)
}

func oneOf[T ~string](known []T) string {
	text := string(known[0])
	for i, value := range known[1:] {
		if i == len(known)-2 {
			text += " or " + string(value)
		} else {
			text += ", " + string(value)
		}
	}
	return text
}

// text reports a text that is missing, too long or of the wrong form, and tells
// whether it is good.
func (c *checker) text(path *field.Path, value string, f form) bool {
	switch {
	case value == "":
		c.required(path, f.mend)
	case utf8.RuneCountInString(value) > f.longest:
		c.errs = append(c.errs, field.TooLongCharacters(path, value, f.longest))
	case f.pattern != nil && !f.pattern.MatchString(value):
		c.invalid(path, value, f.mend)
	default:
		return true
	}
	return false
}

// optional is text for a field that may be absent.
func (c *checker) optional(path *field.Path, value string, f form) {
	if value != "" {
		c.text(path, value, f)
	}
}

// texts checks a list whose items are all different.
func texts[T ~string](c *checker, path *field.Path, values []T, most int, f form) {
	c.count(path, len(values), most)
	for i, value := range values {
		c.text(path.Index(i), string(value), f)
	}
	unique(c, values, func(i int) *field.Path { return path.Index(i) })
}

// count reports a list that is too long.
func (c *checker) count(path *field.Path, n, most int) {
	if n > most {
		c.errs = append(c.errs, field.TooMany(path, n, most))
	}
}

// unique reports values that stand in a list twice. A missing one is reported
// elsewhere.
func unique[T ~string](c *checker, values []T, at func(int) *field.Path) {
	seen := map[T]bool{}
	for i, value := range values {
		if value != "" && seen[value] {
			c.errs = append(c.errs, field.Duplicate(at(i), value))
		}
		seen[value] = true
	}
}

// number reports a number out of bounds. nil is for absent.
func number[T int32 | int64](c *checker, path *field.Path, value *T, least, most T) {
	if value != nil && (*value < least || *value > most) {
		c.invalid(path, *value, fmt.Sprintf("write a number from %d to %d", least, most))
	}
}

// pattern reports a text that is no regular expression. It must be one by itself,
// or a parenthesis in it could end the one that it is put in.
func (c *checker) pattern(path *field.Path, value string) {
	if utf8.RuneCountInString(value) > maxPattern {
		c.errs = append(c.errs, field.TooLongCharacters(path, value, maxPattern))
		return
	}
	_, err := regexp.Compile(value)
	if err == nil {
		_, err = regexp.Compile(`^(?:` + value + `)$`)
	}
	if err != nil {
		c.invalid(path, value, patternForm.mend+": "+err.Error())
	}
}

// ranges checks CIDRs and addresses.
func (c *checker) ranges(path *field.Path, ranges []v1alpha1.AddressRange) {
	c.count(path, len(ranges), 64)
	for i, text := range ranges {
		if _, err := ParseRange(string(text)); err != nil {
			c.invalid(path.Index(i), text, err.Error())
		}
	}
}

// selector checks what picks pods or namespaces.
func (c *checker) selector(path *field.Path, s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for i, e := range s.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		if e.Key == "" {
			c.required(at.Child("key"), "write the key of a label")
		}
		if !choice(c, at.Child("operator"), e.Operator, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist) {
			continue
		}
		takesValues := e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn
		if takesValues && len(e.Values) == 0 {
			c.required(at.Child("values"), "In and NotIn take at least one value")
		} else if !takesValues && len(e.Values) > 0 {
			c.forbidden(at.Child("values"), "Exists and DoesNotExist take no values")
		}
	}
}
