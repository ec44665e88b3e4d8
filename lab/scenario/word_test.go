package scenario

import "testing"

func TestFirstWord(t *testing.T) {
	for sql, want := range map[string]string{
		"commit": "COMMIT", " (SELECT 1)": "SELECT", "/* route=/buy */ -- x\nROLLBACK TO a": "ROLLBACK", "/*!50100 SELECT */": "", "": "",
	} {
		if got := FirstWord(sql); got != want {
			t.Errorf("%q: %q, want %q", sql, got, want)
		}
	}
}
