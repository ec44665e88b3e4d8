package flow

import (
	"fmt"
	"testing"
	"time"

	"wirecheck/history"
)

// TestTimes: which values are the time of the statement, and near misses.
func TestTimes(t *testing.T) {
	at := time.Date(2026, 11, 28, 10, 0, 7, 250e6, time.UTC).UnixNano()
	for value, want := range map[string]bool{
		"2026-11-28 10:00:07.25":         true,
		"2026-11-28T10:00:05Z":           true,
		"2026-11-28 11:30:07.1":          true, // another zone
		"2026-11-28 11:00:07.123+01":     true,
		"2026-11-28 10:00:07.123 +00:00": true,
		"2026-11-27 23:00:07":            true,
		"1795860007":                     true,
		"1795860007123.5":                true,
		"2026-11-28 12:00:07+01":         false, // in an hour
		"2026-11-28 10:07:07":            false, // in no zone
		"2026-11-28 10:00:00":            false, // may be a date that a person chose
		"2026-11-28 10:00:00Z":           true,
		"2026-11-28 10:00:15Z":           false, // in the future
		"2026-11-28 09:58:07Z":           false, // long ago
		"2026-11-28":                     false,
		"2026-11-30 10:00:07":            false,
		"1795860107":                     false,
		"1795860":                        false,
		"x":                              false,
		"":                               false,
	} {
		list := []history.Operand{{Column: "n", Role: history.RoleSet, Value: "5"}, {Column: "at", Role: history.RoleSet, Value: value}, {Column: "id", Role: history.RoleEqual, Value: "1"}}
		if Times(list, at); (list[1].Role == history.RoleTime) != want || list[0].Role != history.RoleSet || want && !MayTime("SET at = '"+value+"'", at) {
			t.Errorf("%s: %v", value, list)
		}
	}
	now := history.Operand{Column: "at", Role: history.RoleSet, Value: "2026-11-28 10:00:07.25"}
	for want, list := range map[string][]history.Operand{
		"alone":      {now, {Column: "id", Role: history.RoleEqual}},
		"a version":  {now, {Column: "n", Role: history.RoleSet}, {Column: "at", Role: history.RoleEqual}},
		"others too": {now, {Column: "b", Role: history.RoleTime}},
	} {
		if Times(list, at); list[0].Role != history.RoleSet {
			t.Errorf("%s: %s", want, fmt.Sprint(list))
		}
	}
	if MayTime("2026-11-28", 0) || MayTime("UPDATE t SET at = '2026-09-28 10:00:07', n = 17", at) {
		t.Error("no time")
	}
}
