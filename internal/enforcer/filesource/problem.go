package filesource

import (
	"strconv"
	"strings"
)

// Problem is one thing that is wrong, or as a warning odd, with a file.
type Problem struct {
	// File as it was named or found.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Field is a path such as spec.rules[0].window; empty means the document as a
	// whole.
	Field string
	// Message says what is wrong and how to mend it.
	Message string
}

// String returns file:line: field: message, as editors and terminals link it.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
	}
	if p.Field != "" {
		b.WriteString(": " + p.Field)
	}
	b.WriteString(": " + p.Message)
	return b.String()
}

// Problems are in the order of files and lines.
type Problems []Problem

// String returns a line for each.
func (ps Problems) String() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns a ProblemsError, or nil where there are none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return &ProblemsError{ps}
}

// ProblemsError is the error of files that can't be used.
type ProblemsError struct {
	// Problems are one at least.
	Problems Problems
}

// Error returns a line for each problem.
func (e *ProblemsError) Error() string { return e.Problems.String() }
