package report

import (
	"strings"
	"testing"
)

// TestValues: a finding shows what was read and written, as far as that is certain, to those who may see it.
func TestValues(t *testing.T) {
	const skeleton = `s1 session postgres "15"
s2 session postgres "15"
s1 t1 begin "read committed"
s2 t2 begin "read committed"
t1 r coupon.7@0 values "READ" -- SELECT n, note FROM coupon WHERE id = 7
t2 w coupon.7 0>1 -- FIRST
t2 commit
t1 w coupon.7 1>2 -- LAST
t1 commit
`
	const effect = "You did not take session 2's change of "
	you := Reader{Session: 1, Others: true}
	for _, tt := range []struct {
		name, read, first, last string
		want                    []string
		not                     string
	}{
		{"numbers", "n 5", "UPDATE coupon SET n = 4 WHERE id = 7", "UPDATE coupon SET n = 3 WHERE id = 7", []string{"You read n = 5 in", "2. Session 2 set n = 4 in", "3. You set n = 3 in",
			"One of the two changes is lost: when you set n to 3, it was no longer the 5 that you had read. Had session 2 come first, you would have read 4."}, "may be"},
		{"the same number in other words", "n 5.00", "UPDATE coupon SET n = 5 WHERE id = 7", "UPDATE coupon SET n = 3 WHERE id = 7", []string{effect}, "no longer"},
		{"a number that may be rounded", "n 5", "UPDATE coupon SET n = 5.2 WHERE id = 7", "UPDATE coupon SET n = 3 WHERE id = 7",
			[]string{"One of the two changes may be lost: session 2 set n after you had read 5."}, "no longer"},
		{"texts", "note new", "UPDATE coupon SET note = 'sold' WHERE id = 7", "UPDATE coupon SET note = 'gift' WHERE id = 7",
			[]string{"You read note = 'new' in", "set note = 'sold' in", "may be lost: session 2 set note after you had read 'new'."}, "no longer"},
		{"computed", "n 5", "UPDATE coupon SET n = n - 1 WHERE id = 7", "UPDATE coupon SET n = 3 WHERE id = 7", []string{"Session 2 changed n in", "may be lost: session 2 set n after you had read 5."}, "= 1"},
		{"computed beside a value", "n 5", "UPDATE coupon SET note = 'x', n = n - 1 WHERE id = 7", "UPDATE coupon SET note = 'y', n = 3 WHERE id = 7",
			[]string{"Session 2 set note = 'x' and n in", "3. You set note = 'y', n = 3 in"}, "'y', n = 3 and"},
		{"an expression with a number", "n 5", "UPDATE coupon SET n = 4 DIV 2 WHERE id = 7", "UPDATE coupon SET n = 3 WHERE id = 7", []string{"Session 2 changed n in"}, "n = 4 in"},
		{"a call", "n 5", "UPDATE coupon SET n = abs(4) WHERE id = 7", "UPDATE coupon SET n = (3) WHERE id = 7", []string{"Session 2 changed n in", "You changed n in"}, "n = 4 in"},
		{"other columns", "n 5 note new", "UPDATE coupon SET note = 'x' WHERE id = 7", "UPDATE coupon SET n = 3 WHERE id = 7", nil, ""},
		{"a secret", "n 5", "UPDATE coupon SET password = 'hush', n = 4 WHERE id = 7", "UPDATE coupon SET n = 3 WHERE id = 7", []string{"Session 2 set n = 4 and password in"}, "set password = 'hush'"},
		{"a backslash", "note new", `UPDATE coupon SET note = 'a\\b' WHERE id = 7`, "UPDATE coupon SET note = 'c' WHERE id = 7", []string{"Session 2 changed note in"}, "set note = 'a"},
	} {
		text := strings.NewReplacer("READ\"", tt.read+"\"", "FIRST", tt.first, "LAST", tt.last).Replace(skeleton)
		found := findings(t, text)
		if want := min(1, len(tt.want)); len(found) != want {
			t.Errorf("%s: %d findings, want %d", tt.name, len(found), want)
		}
		if len(found) != 1 {
			continue
		}
		w := Warning(found[0], you)
		for _, want := range tt.want {
			if !strings.Contains(w.Detail, want) {
				t.Errorf("%s: %q is not in\n%s", tt.name, want, w.Detail)
			}
		}
		if strings.Contains(w.Detail, tt.not) {
			t.Errorf("%s: %q is in\n%s", tt.name, tt.not, w.Detail)
		}
		// Who may not see the other user's values sees neither them nor what follows from them.
		w = Warning(found[0], Reader{Session: 1, User: "bob"})
		if !strings.Contains(w.Detail, "You read n") && !strings.Contains(w.Detail, "You read note") {
			t.Errorf("%s: the reader's own value is not in\n%s", tt.name, w.Detail)
		}
		if said := w.Detail + w.Hint; strings.Contains(said, "n = 4") || strings.Contains(said, "sold") || strings.Contains(said, "5.2") || strings.Contains(said, "no longer") {
			t.Errorf("%s: told to another user:\n%s\n%s", tt.name, w.Detail, w.Hint)
		}
		found[0].HideValues()
		if w := Warning(found[0], you); strings.Contains(w.Detail, "You read n") || strings.Contains(w.Detail, "Session 2 set") || !strings.Contains(w.Detail, effect) {
			t.Errorf("%s: values are off:\n%s", tt.name, w.Detail)
		}
	}
}
