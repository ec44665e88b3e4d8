package scenario

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/answer"
)

func sprint(v any) string { return fmt.Sprint(v) }

// run is a scripted result.
type run struct {
	steps   map[string]StepResult
	found   map[string]bool
	crashed bool
}

func (r run) Step(name string) (StepResult, bool) { st, ok := r.steps[name]; return st, ok }
func (r run) Found(o string) (bool, bool)         { found, known := r.found[o]; return found, known }
func (r run) Crashed() bool                       { return r.crashed }

// rows reads rows as the tests write them: values by |, ~ for NULL.
func rows(texts ...string) [][]answer.Value {
	var all [][]answer.Value
	for _, text := range texts {
		var row []answer.Value
		for v := range strings.SplitSeq(text, "|") {
			if v == "~" {
				row = append(row, nil)
			} else {
				row = append(row, answer.Value(v))
			}
		}
		all = append(all, row)
	}
	return all
}

func result(r answer.Result, blocked bool) StepResult { return StepResult{Result: r, Blocked: blocked} }

func TestConditions(t *testing.T) {
	r := run{
		steps: map[string]StepResult{
			"two":    result(answer.Result{Rows: rows("1|10", "2|20")}, false),
			"twice":  result(answer.Result{Rows: rows("5|a", "5|a")}, false),
			"none":   {},
			"odd":    result(answer.Result{Rows: rows("~|it's", "NULL|", "a b|x,y")}, false),
			"up":     result(answer.Result{Affected: 2}, true),
			"bad":    result(answer.Result{Err: &answer.Error{Code: "40001"}, Rows: rows("1|10")}, true),
			"a step": {},
		},
		found: map[string]bool{"wss-tx": true, "troc": false},
	}
	tests := map[string]Truth{
		"rows(two) are 1|10, 2|20":                      True,
		"rows(two) are 2|20, 1|10":                      True,
		"rows(two) are 1|10":                            False,
		"rows(two) are 1|10, 2|20, 2|20":                False,
		"rows(two) contain 2|20":                        True,
		"rows(two) contain 2|20, 2|20":                  False,
		"rows(two) contain 2|2":                         False,
		"rows(two) contain 2":                           False,
		"rows(two) lack 3|30, 1|20":                     True,
		"rows(two) lack 3|30, 1|10":                     False,
		"rows(twice) are 5|a":                           False,
		"rows(twice) are 5|a, 5|a":                      True,
		"rows(none) are none":                           True,
		"rows(two) are none":                            False,
		"rows(bad) are none":                            False,
		"rows(bad) contain 1|10":                        False,
		"rows(skipped) are none":                        False,
		"not rows(skipped) are none":                    True,
		"rows(odd) contain NULL|'it''s'":                True,
		"rows(odd) contain 'NULL'|'it''s'":              False,
		"rows(odd) contain 'NULL'|'', 'a b'|'x,y'":      True,
		"count(two) = 2":                                True,
		"count(none)=0":                                 True,
		"count(skipped) = 0":                            False,
		"affected(up) = 2":                              True,
		"affected(up) = 1":                              False,
		"affected(bad) = 0":                             False,
		"ok(up)":                                        True,
		"ok(bad)":                                       False,
		"ok(skipped)":                                   False,
		"failed(bad)":                                   True,
		"failed(skipped)":                               False,
		"failed(bad) with 1213, 40001":                  True,
		"failed(bad) with 1213":                         False,
		"blocked(up)":                                   True,
		"blocked(bad)":                                  True,
		"not blocked(two)":                              True,
		`ok("a step")`:                                  True,
		"found(wss-tx)":                                 True,
		"found(troc)":                                   False,
		"found(radar)":                                  Unknown,
		"not found(radar)":                              Unknown,
		"found(radar) and ok(bad)":                      False,
		"found(radar) and ok(up)":                       Unknown,
		"found(radar) or ok(up)":                        True,
		"found(radar) or ok(bad)":                       Unknown,
		"crashed":                                       False,
		"ok(bad) and ok(bad) or ok(up)":                 True,
		"ok(bad) and (ok(bad) or ok(up))":               False,
		"not ok(bad) and ok(up)":                        True,
		"not (ok(bad) or ok(up))":                       False,
		"not not ok(up)":                                True,
		"rows(two) are 1|10, 2|20 and ok(up)":           True,
		"rows(two) are 1|10 or rows(two) contain 1|10 ": True,
	}
	for text, want := range tests {
		c, err := ParseCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.Eval(r); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
		again, err := ParseCondition(c.String())
		if err != nil || again.String() != c.String() || again.Eval(r) != want {
			t.Errorf("%s: printed as %s, then %s %v", text, c, again, err)
		}
	}
	if c, _ := ParseCondition("crashed"); c.Eval(run{crashed: true}) != True {
		t.Errorf("crashed is not seen")
	}
}

func TestConditionProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "found the end of the line, expected rows(STEP), ",
		"rows":                      "found the end of the line, expected ( after rows",
		"rows()":                    `found ")", expected a name in the parentheses after rows`,
		"rows(a":                    "found the end of the line, expected )",
		"rows(a) are":               "found the end of the line, expected a value of a row",
		"rows(a) are 1|":            "found the end of the line, expected a value of a row",
		"rows(a) are 1,":            "found the end of the line, expected a value of a row",
		"rows(a) are 1 2":           `found "2", expected and, or, or the end of the line`,
		"rows(a) contain none":      `found "none", expected a value of a row`,
		"rows(a) are 'x":            `the quote ' in "'x" is not closed`,
		"count(a) = x":              `found "x", expected a number after =`,
		"count(a) = -1":             `found "-1", expected a number after =`,
		"count(a) 1":                `found "1", expected = and a number`,
		"ok(a) ok(b)":               `found "ok", expected and, or, or the end of the line`,
		"ok(a) and":                 "found the end of the line, expected rows(STEP), ",
		"(ok(a)":                    "found the end of the line, expected )",
		"failed(a) with":            "found the end of the line, expected an error code",
		"found(me)":                 `found the oracle "me", expected one of: isolation, wss-tx`,
		strings.Repeat("not ", 200): "more than 100 parentheses and nots inside each other",
	} {
		_, err := ParseCondition(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.30q: got %v, want %s", text, err, want)
		}
	}
}
