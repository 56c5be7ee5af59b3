package measure

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Table is what a benchmark prints: the first column to the left, numbers to the
// right.
type Table struct {
	title  string
	rows   [][]string
	widths []int
}

// NewTable begins a table with its headings.
func NewTable(title string, headings ...any) *Table {
	t := &Table{title: title, widths: make([]int, len(headings))}
	t.Row(headings...)
	return t
}

// Row adds a row of one cell per heading. Nil is an empty cell.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.widths))
	for i, c := range cells {
		row[i] = cell(c)
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i]))
	}
	t.rows = append(t.rows, row)
}

// cell writes a number with about three digits, and no more than it needs.
func cell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case float64:
		switch {
		case v < 10:
			return fmt.Sprintf("%.2f", v)
		case v < 100:
			return fmt.Sprintf("%.1f", v)
		}
		return fmt.Sprintf("%.0f", v)
	case time.Duration:
		switch {
		case v == 0:
			return ""
		case v < time.Microsecond:
			return fmt.Sprintf("%d ns", v.Nanoseconds())
		case v >= 10*time.Millisecond:
			return fmt.Sprintf("%.1f ms", float64(v)/float64(time.Millisecond))
		}
		return fmt.Sprintf("%.1f µs", float64(v)/float64(time.Microsecond))
	}
	return fmt.Sprint(value)
}

// String is the table as text.
func (t *Table) String() string {
	var b strings.Builder
	b.WriteString(t.title + "\n")
	for _, row := range t.rows {
		fmt.Fprintf(&b, "  %-*s", t.widths[0], row[0])
		for i, text := range row[1:] {
			fmt.Fprintf(&b, "  %*s", t.widths[i+1], text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Print logs the table.
func (t *Table) Print(tb testing.TB) {
	tb.Helper()
	tb.Log(t.String())
}

// AtLeast fails tb where a number falls short.
func AtLeast(tb testing.TB, what string, got, want float64) {
	tb.Helper()
	if !(got >= want) { // also where it is not a number
		tb.Errorf("%s: %.2f, want at least %.2f", what, got, want)
	}
}

// AtMost fails tb where a number is too large.
func AtMost(tb testing.TB, what string, got, want float64) {
	tb.Helper()
	if !(got <= want) { // also where it is not a number
		tb.Errorf("%s: %.2f, want at most %.2f", what, got, want)
	}
}
