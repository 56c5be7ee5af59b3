package filesource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// maxWrongTypes bounds how many values of the wrong type are reported at once.
const maxWrongTypes = 20

// decode reads and validates a document, and reports all that is wrong with it.
// JSON's decoder stops at the first value of a wrong type; so each is reported,
// taken for absent, and the rest read again.
func decode[T any](d *document, read func([]byte) (*T, error), validate func(*T) field.ErrorList) (*T, Problems) {
	source := Source{d}
	var problems Problems
	text := d.json
	for range maxWrongTypes {
		object, err := read(text)
		wrong := (*json.UnmarshalTypeError)(nil)
		if !errors.As(err, &wrong) {
			if err != nil {
				problems = append(problems, strictProblems(source, err, reflect.TypeFor[T]())...)
			}
			if validate != nil && object != nil {
				problems = append(problems, invalid(source, validate(object), problems)...)
			}
			return object, problems
		}
		path, without := removeAt(text, wrong.Offset)
		problems = append(problems, source.At(path, typeMessage(wrong)))
		if without == nil {
			break
		}
		text = without
	}
	return nil, problems
}

// strictProblems reports unknown fields, and whatever else the decoder refuses.
func strictProblems(source Source, err error, of reflect.Type) Problems {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	var problems Problems
	for _, one := range all {
		var unknown kjson.FieldError
		var value base64Error
		var empty *field.Error
		switch {
		case errors.As(one, &empty):
			problems = append(problems, source.At(empty.Field, empty.ErrorBody()))
		case errors.As(one, &value):
			problems = append(problems, source.At(value.path, value.mend()))
		case errors.As(one, &unknown):
			problems = append(problems, source.At(unknown.FieldPath(), noSuchField(of, unknown.FieldPath())))
		default:
			problems = append(problems, source.At("", strings.TrimPrefix(one.Error(), "decode: ")))
		}
	}
	return problems
}

func noSuchField(of reflect.Type, path string) string {
	known := siblings(of, path)
	if len(known) == 0 {
		return "no such field"
	}
	return "no such field; known here: " + strings.Join(known, ", ")
}

// invalid reports what validation found, but for what follows from a problem that
// is known already.
func invalid(source Source, errs field.ErrorList, known Problems) Problems {
	var problems Problems
	for _, err := range errs {
		follows := func(p Problem) bool {
			rest, ok := strings.CutPrefix(err.Field, p.Field)
			return ok && p.Field != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		if !slices.ContainsFunc(known, follows) {
			problems = append(problems, source.At(err.Field, err.ErrorBody()))
		}
	}
	return problems
}

// typeMessage says which type a field wants. It shows no value: it may be a
// Secret's.
func typeMessage(err *json.UnmarshalTypeError) string {
	got, _, _ := strings.Cut(err.Value, " ")
	got = map[string]string{"string": "text", "object": "an object", "array": "a list", "bool": "true or false", "number": "a number"}[got]
	want := "another type"
	switch t := err.Type; t.Kind() {
	case reflect.Int32, reflect.Int64:
		want = "a whole number, without quotes or fraction"
		if got == "a number" {
			return "write a whole number, without fraction and of at most 9007199254740991"
		}
	case reflect.String:
		want = "text; put it in quotes"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
		if t.Elem().Kind() == reflect.Uint8 {
			want = "text in base64"
		}
	case reflect.Struct, reflect.Map:
		want = "an object"
	}
	return fmt.Sprintf("is %s; write %s", got, want)
}

// removeAt finds the value that ends, or for lists and objects begins, at an
// offset of a JSON text. It returns the value's path and the text with null in
// its place.
func removeAt(text []byte, offset int64) (path string, without []byte) {
	from, to, at := find(text, offset)
	if at == nil {
		return "", nil
	}
	return at.String(), slices.Concat(text[:from], []byte("null"), text[to:])
}

// find goes through the tokens up to an offset.
func find(text []byte, offset int64) (from, to int64, at *place) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	return seek(decoder, text, offset, &place{})
}

// seek reads one value. It returns the innermost whose first token ends at or
// after offset.
func seek(decoder *json.Decoder, text []byte, offset int64, here *place) (from, to int64, at *place) {
	start := decoder.InputOffset()
	token, err := decoder.Token()
	if err != nil {
		return 0, 0, nil
	}
	start += int64(len(text[start:]) - len(bytes.TrimLeft(text[start:], " \t\r\n,:")))
	hit := decoder.InputOffset() >= offset
	if delim, ok := token.(json.Delim); ok {
		for i := 0; decoder.More(); i++ {
			child := here.item(i)
			if delim == '{' {
				key, err := decoder.Token()
				name, ok := key.(string)
				if err != nil || !ok {
					return 0, 0, nil
				}
				child = here.field(name)
			}
			from, to, at = seek(decoder, text, offset, child)
			if at != nil && !hit {
				return from, to, at
			}
		}
		if _, err := decoder.Token(); err != nil {
			return 0, 0, nil
		}
	}
	if hit {
		return start, decoder.InputOffset(), here
	}
	return 0, 0, nil
}

// siblings lists the fields of the object that a path's last step would be in.
func siblings(t reflect.Type, path string) []string {
	all := steps(path)
	for _, step := range all[:max(0, len(all)-1)] {
		if _, err := strconv.Atoi(step); err == nil {
			continue // an item: elem goes there
		}
		if t = elem(t); t.Kind() != reflect.Struct {
			return nil
		}
		next := fieldNamed(t, step)
		if next == nil {
			return nil
		}
		t = next
	}
	if t = elem(t); t.Kind() != reflect.Struct {
		return nil
	}
	return fieldNames(t)
}

func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNamed(t reflect.Type, name string) reflect.Type {
	for f := range t.Fields() {
		if jsonName(f) == name {
			return f.Type
		}
	}
	return nil
}

func fieldNames(t reflect.Type) []string {
	if t == reflect.TypeFor[metav1.ObjectMeta]() {
		return []string{"name", "namespace", "labels", "annotations"}
	}
	var names []string
	for f := range t.Fields() {
		switch name := jsonName(f); {
		case name == "" && f.Anonymous:
			names = append(names, fieldNames(f.Type)...)
		case name != "":
			names = append(names, name)
		}
	}
	return names
}
