package level_test

import (
	"bytes"
	"fmt"
	"testing"

	"wirecheck/history"
	"wirecheck/offline"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
)

// judgedFile judges a history as `wirecheck check` judges a file: a sieve says first which transactions can be part of an anomaly. If a level is asked for, the
// proof that it is satisfied is made and checked.
func judgedFile(t *testing.T, events []history.Event, opts isolation.Options, asked *level.Level) *offline.Judgement {
	t.Helper()
	var b bytes.Buffer
	w, err := history.NewWriter(&b, history.Header{Engine: "postgres", Run: "test"})
	for i := range events {
		if err == nil {
			err = w.Write(&events[i])
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	j, err := offline.Judge([]offline.Input{{In: bytes.NewReader(b.Bytes()), Path: "h", Name: "h"}}, opts, asked != nil, func(text string) { t.Error(text) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if asked != nil {
		if _, err := j.Levels(asked); err != nil {
			t.Error(err)
		}
	}
	return j
}

// told are the findings of a judgement: what, and between which transactions.
func told(c *isolation.Checker) (out []string) {
	for _, f := range c.Summary() {
		s := fmt.Sprint(f.ID, " ", f.Class, " ", f.Kind)
		for _, t := range f.Transactions {
			s += fmt.Sprint(" ", t.ID)
		}
		out = append(out, s)
	}
	return out
}
