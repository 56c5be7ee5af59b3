package policy

import (
	"testing"
	"time"
)

func TestParseWindow(t *testing.T) {
	for text, want := range map[string]int64{
		"1s": 1, "60s": 60, "1m": 60, "90m": 5400, "24h": 86400, "1d": 86400, "30d": 2592000, "366d": MaxWindow,
		"8784h": MaxWindow, "31622400s": MaxWindow,
		// Refused:
		"": 0, "1": 0, "m": 0, "60": 0, "0s": 0, "01s": 0, "-5s": 0, "+5s": 0, "1.5h": 0, "1mo": 0, "1w": 0, "1M": 0, "1 m": 0,
		" 1m": 0, "1m ": 0, "1m\n": 0, "1h30m": 0, "367d": 0, "8785h": 0, "31622401s": 0, "99999999d": 0, "100000000s": 0, "１s": 0, "\xff": 0,
	} {
		got, err := ParseWindow(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d seconds, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1ms": time.Millisecond, "50ms": 50 * time.Millisecond, "99999ms": 99999 * time.Millisecond, "2s": 2 * time.Second,
		// Refused:
		"": 0, "0s": 0, "1": 0, "1m": 0, "1us": 0, "-1s": 0, "1.5s": 0, "1s5ms": 0, "100000ms": 0, "05s": 0, "1s\n": 0,
	} {
		got, err := ParseTimeout(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
}
