package answer

import "testing"

func TestText(t *testing.T) {
	row := []Value{Value("1"), nil, {}}
	if got := RowText(row); got != "(1, NULL, )" {
		t.Errorf("got %s", got)
	}
	texts := Strings([][]Value{row})
	if len(texts) != 1 || *texts[0][0] != "1" || texts[0][1] != nil || texts[0][2] == nil || *texts[0][2] != "" {
		t.Errorf("NULL and empty are not apart: %v", texts)
	}
	if SameRow(row, []Value{Value("1"), {}, {}}) || !SameRow(row, []Value{Value("1"), nil, {}}) {
		t.Error("NULL is equal to empty, or not to itself")
	}
}

func TestSameError(t *testing.T) {
	a, b, c := &Error{Code: "1213", Message: "x"}, &Error{Code: "1213", Message: "y"}, &Error{Code: "1205"}
	if !SameError(nil, nil) || SameError(a, nil) || SameError(nil, a) || !SameError(a, b) || SameError(a, c) {
		t.Error("errors are compared by something other than their codes")
	}
}

func TestState(t *testing.T) {
	for s, want := range map[State]string{Unknown: "", Idle: "idle", Open: "open", Failed: "failed", 7: "7"} {
		if got := s.String(); got != want {
			t.Errorf("%d: %q, want %q", byte(s), got, want)
		}
	}
	if Unknown.InTransaction() || Idle.InTransaction() || !Open.InTransaction() || !Failed.InTransaction() {
		t.Error("a transaction is open while it is open or has failed")
	}
}
