package policy

import (
	"errors"
	"strconv"
	"time"
)

// MaxWindow is the longest window, in seconds: 366 days.
const MaxWindow = 366 * 24 * 60 * 60

var errWindow = errors.New("write a whole number with s, m, h or d, from 1s to 366d, for example 1m")

// ParseWindow reads a window such as 1m and returns its length in seconds.
func ParseWindow(text string) (int64, error) {
	if text == "" {
		return 0, errWindow
	}
	units := map[byte]int64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}
	digits, unit := text[:len(text)-1], units[text[len(text)-1]]
	if unit == 0 || !allDigits(digits) || len(digits) > 8 || digits[0] == '0' {
		return 0, errWindow
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n*unit > MaxWindow {
		return 0, errWindow
	}
	return n * unit, nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// ParseTimeout reads a backend's timeout, a whole number with ms or s.
func ParseTimeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || !timeoutPattern.MatchString(text) {
		return 0, errors.New("write a whole number with ms or s, for example 50ms")
	}
	return d, nil
}
