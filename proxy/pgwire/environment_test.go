package pgwire

import (
	"testing"
	"time"
)

// TestInterval reads the texts in which the server shows a time, and others, which make no sense.
func TestInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "": 0, "500ms": 500 * time.Millisecond, "2s": 2 * time.Second, "90min": 90 * time.Minute, "3h": 3 * time.Hour, "1d": 24 * time.Hour, "7": 7 * time.Millisecond,
		"2 s": 0, "s": 0, "2weeks": 0, "-1": 0, "9999999999999999999s": 0,
	} {
		if got := interval(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}
