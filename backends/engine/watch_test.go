package engine

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/product"
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
	p := &product.Product{Errors: []product.ErrorRow{
		{Codes: []string{"lost"}, Class: product.ErrorClass{Reason: answer.ReasonDeadlock, Retry: true, Aborts: true}},
		{Codes: []string{"killed"}, Class: product.ErrorClass{Reason: answer.ReasonKilled, Gone: true}},
	}}
	broken := errors.New("broken pipe")
	tests := []struct {
		name          string
		before, after answer.State
		code, tag     string
		severity      string
		aborted       bool
		err           error
		want          answer.Effect
		reason        answer.Reason
	}{
		{"done", answer.Open, answer.Open, "", "UPDATE 1", "", false, nil, answer.EffectNone, ""},
		{"committed", answer.Open, answer.Idle, "", "COMMIT", "", false, nil, answer.EffectNone, ""},
		{"rolled back", answer.Failed, answer.Idle, "", "ROLLBACK", "", false, nil, answer.EffectRolledBack, ""},
		{"to a savepoint", answer.Failed, answer.Open, "", "ROLLBACK", "", false, nil, answer.EffectNone, ""},
		{"statement", answer.Open, answer.Open, "x", "", "", false, nil, answer.EffectStatement, answer.ReasonOther},
		{"statement outside", answer.Idle, answer.Idle, "x", "", "ERROR", false, nil, answer.EffectStatement, answer.ReasonOther},
		{"deadlock outside", answer.Idle, answer.Idle, "lost", "", "", false, nil, answer.EffectStatement, answer.ReasonDeadlock},
		{"failed", answer.Open, answer.Failed, "x", "", "ERROR", false, nil, answer.EffectFailed, answer.ReasonOther},
		{"failed again", answer.Failed, answer.Failed, "x", "", "ERROR", false, nil, answer.EffectFailed, answer.ReasonOther},
		{"victim", answer.Open, answer.Idle, "lost", "", "", false, nil, answer.EffectRolledBack, answer.ReasonDeadlock},
		{"rolled back by what the server was asked", answer.Open, answer.Idle, "x", "", "", true, nil, answer.EffectRolledBack, answer.ReasonOther},
		{"COMMIT refused", answer.Open, answer.Idle, "x", "", "ERROR", false, nil, answer.EffectRolledBack, answer.ReasonOther},
		{"implicit commit", answer.Open, answer.Idle, "x", "", "", false, nil, answer.EffectCommitted, answer.ReasonOther},
		{"killed", answer.Open, answer.Open, "killed", "", "FATAL", false, broken, answer.EffectGone, answer.ReasonKilled},
		{"killed, told in time", answer.Open, answer.Open, "killed", "", "", false, nil, answer.EffectGone, answer.ReasonKilled},
		{"broken", answer.Open, answer.Open, "", "", "", false, broken, answer.EffectGone, answer.ReasonServer},
	}
	for _, test := range tests {
		a := answer.Answer{Before: test.before, After: test.after}
		if test.tag != "" {
			a.Results = []answer.Result{{Tag: test.tag}}
		}
		if test.code != "" {
			a.Err = &answer.Error{Code: test.code, Severity: test.severity, Aborted: test.aborted}
		}
		got := Judge(p, a, test.err)
		if got.Effect != test.want || got.Reason != test.reason {
			t.Errorf("%s: got %+v; want %s, %s", test.name, got, test.want, test.reason)
		}
	}
}

// TestCutOff: what is under way when ctx ends fails, and gives ctx's error; what was done by then does not, and the connection is as good as before.
func TestCutOff(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	own := errors.New("its own")
	if err := CutOff(ctx, a)(nil); err != nil {
		t.Errorf("before ctx ends: %v", err)
	}
	if err := CutOff(ctx, a)(own); err != own {
		t.Errorf("before ctx ends, of an error of its own: %v", err)
	}
	stop := CutOff(ctx, a)
	time.AfterFunc(time.Millisecond, cancel)
	_, err := a.Read(make([]byte, 1))
	if err == nil {
		t.Error("the read does not end with ctx")
	}
	if err := stop(err); !errors.Is(err, context.Canceled) {
		t.Errorf("after ctx ended: %v", err)
	}
	if err := CutOff(context.Background(), a)(own); err != own {
		t.Errorf("without an end: %v", err)
	}
	for range 100 { // ctx has ended, but nothing failed of it
		if err := CutOff(ctx, a)(nil); err != nil {
			t.Fatalf("done before ctx ended: %v", err)
		}
		go b.Write([]byte{1})
		if _, err := a.Read(make([]byte, 1)); err != nil {
			t.Fatalf("the next one: %v", err)
		}
	}
}
