package live

import (
	"regexp"
	"testing"
	"time"
)

// TestRunName: processes that start in the same microsecond have different names, of few letters and digits.
func TestRunName(t *testing.T) {
	names := map[string]bool{}
	for range 4 { // that all are alike has a chance of 1 in 4e18
		name := RunName(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
		if !regexp.MustCompile(`^[a-z0-9]{14}$`).MatchString(name) {
			t.Errorf("%q", name)
		}
		names[name] = true
	}
	if len(names) == 1 {
		t.Errorf("all are %v", names)
	}
}
