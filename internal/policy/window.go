package policy

import (
	"errors"
	"regexp"
	"strconv"
	"time"
)

// MaxWindow is the longest window, in seconds: 366 days.
const MaxWindow = 366 * 24 * 60 * 60

var (
	windowPattern  = regexp.MustCompile(`^([1-9][0-9]{0,7})(s|m|h|d)$`)
	timeoutPattern = regexp.MustCompile(`^[1-9][0-9]{0,4}(ms|s)$`)
	windowUnits    = map[string]int64{"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}

	errWindow  = errors.New("write a whole number with s, m, h or d, from 1s to 366d, for example 1m")
	errTimeout = errors.New("write a whole number with ms or s, for example 50ms")
)

// ParseWindow reads a window such as 1m and returns its length in seconds. The
// error says how to write one.
func ParseWindow(text string) (int64, error) {
	parts := windowPattern.FindStringSubmatch(text)
	if parts == nil {
		return 0, errWindow
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || n*windowUnits[parts[2]] > MaxWindow {
		return 0, errWindow
	}
	return n * windowUnits[parts[2]], nil
}

// ParseTimeout reads a backend's timeout, a whole number with ms or s. The error
// says how to write one.
func ParseTimeout(text string) (time.Duration, error) {
	if !timeoutPattern.MatchString(text) {
		return 0, errTimeout
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errTimeout
	}
	return d, nil
}
