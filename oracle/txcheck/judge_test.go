package txcheck

import (
	"testing"

	"wirecheck/answer"
)

// TestSeveralBroken: which of several broken constraints a server names is not defined. Near miss: one of the errors is none of a constraint.
func TestSeveralBroken(t *testing.T) {
	refused := func(code, state string) answer.Result {
		return answer.Result{Err: &answer.Error{Code: code, SQLState: state}}
	}
	if d := compareAnswers(refused("1062", "23000"), refused("1451", "23000"), true, "UPDATE t SET a = 1"); d != nil {
		t.Errorf("two broken constraints: %+v", d)
	}
	for _, other := range []answer.Result{refused("1292", "22007"), {}} {
		if d := compareAnswers(refused("1062", "23000"), other, true, "UPDATE t SET a = 1"); d == nil {
			t.Errorf("no difference between a broken constraint and %v", other.Err)
		}
	}
}
