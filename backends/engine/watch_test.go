package engine

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"
)

func TestMarkCycles(t *testing.T) {
	tests := []struct {
		name string
		who  map[uint64][]uint64 // the blocked ones of 1 to 5, and for whom
		want []uint64
	}{
		{"nobody", nil, nil},
		{"a chain", map[uint64][]uint64{1: {2}, 2: {3}}, nil},
		{"two", map[uint64][]uint64{1: {2}, 2: {1}}, []uint64{1, 2}},
		{"three, and one behind them", map[uint64][]uint64{1: {2}, 2: {3}, 3: {1}, 4: {1}}, []uint64{1, 2, 3}},
		{"two ways, one back", map[uint64][]uint64{1: {4, 2}, 2: {1}}, []uint64{1, 2}},
		{"two circles", map[uint64][]uint64{1: {2}, 2: {1}, 3: {4}, 4: {3}, 5: {1, 3}}, []uint64{1, 2, 3, 4}},
		{"one that is not asked about", map[uint64][]uint64{1: {9}}, nil},
		{"itself", map[uint64][]uint64{1: {1}}, []uint64{1}},
	}
	ids := []uint64{1, 2, 3, 4, 5}
	for _, test := range tests {
		waits := make([]Wait, len(ids))
		for id, others := range test.who {
			waits[id-1] = Wait{Blocked: true, For: others}
		}
		MarkCycles(ids, waits)
		var got []uint64
		for i, w := range waits {
			if w.Cycle {
				got = append(got, ids[i])
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestJudge(t *testing.T) {
	class := func(code string) ErrorClass {
		switch code {
		case "lost":
			return ErrorClass{Reason: ReasonDeadlock, Retry: true, Aborts: true}
		case "killed":
			return ErrorClass{Reason: ReasonKilled, Gone: true}
		}
		return ErrorClass{Reason: ReasonOther}
	}
	broken := errors.New("broken pipe")
	tests := []struct {
		name          string
		before, after Transaction
		code, tag     string
		severity      string
		aborted       bool
		err           error
		want          Effect
		reason        Reason
		ended         bool
	}{
		{"done", Open, Open, "", "UPDATE 1", "", false, nil, EffectNone, "", false},
		{"committed", Open, Idle, "", "COMMIT", "", false, nil, EffectNone, "", false},
		{"rolled back", Failed, Idle, "", "ROLLBACK", "", false, nil, EffectRolledBack, "", true},
		{"to a savepoint", Failed, Open, "", "ROLLBACK", "", false, nil, EffectNone, "", false},
		{"statement", Open, Open, "x", "", "", false, nil, EffectStatement, ReasonOther, false},
		{"statement outside", Idle, Idle, "x", "", "ERROR", false, nil, EffectStatement, ReasonOther, false},
		{"deadlock outside", Idle, Idle, "lost", "", "", false, nil, EffectStatement, ReasonDeadlock, false},
		{"failed", Open, Failed, "x", "", "ERROR", false, nil, EffectFailed, ReasonOther, false},
		{"failed again", Failed, Failed, "x", "", "ERROR", false, nil, EffectFailed, ReasonOther, false},
		{"victim", Open, Idle, "lost", "", "", false, nil, EffectRolledBack, ReasonDeadlock, true},
		{"rolled back by what the server was asked", Open, Idle, "x", "", "", true, nil, EffectRolledBack, ReasonOther, true},
		{"COMMIT refused", Open, Idle, "x", "", "ERROR", false, nil, EffectRolledBack, ReasonOther, true},
		{"implicit commit", Open, Idle, "x", "", "", false, nil, EffectCommitted, ReasonOther, true},
		{"killed", Open, Open, "killed", "", "FATAL", false, broken, EffectGone, ReasonKilled, true},
		{"killed, told in time", Open, Open, "killed", "", "", false, nil, EffectGone, ReasonKilled, true},
		{"broken", Open, Open, "", "", "", false, broken, EffectGone, ReasonServer, true},
	}
	for _, test := range tests {
		a := Answer{Before: test.before, After: test.after}
		if test.tag != "" {
			a.Results = []Result{{Tag: test.tag}}
		}
		if test.code != "" {
			a.Err = &ServerError{Code: test.code, Severity: test.severity, Aborted: test.aborted}
		}
		got := Judge(class, a, test.err)
		if got.Effect != test.want || got.Reason != test.reason || got.Effect.Ended() != test.ended {
			t.Errorf("%s: got %+v, ended %v; want %s, %s", test.name, got, got.Effect.Ended(), test.want, test.reason)
		}
	}
}

func TestCutOff(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	stop := CutOff(ctx, a)
	if err := stop(); err != nil {
		t.Errorf("before ctx ends: %v", err)
	}
	stop = CutOff(ctx, a)
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := a.Read(make([]byte, 1)); err == nil {
		t.Error("the read does not end with ctx")
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("after ctx ended: %v", err)
	}
	if err := CutOff(context.Background(), a)(); err != nil {
		t.Error(err)
	}
}
