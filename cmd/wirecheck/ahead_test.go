package main

import (
	"errors"
	"testing"

	"wirecheck/history"
)

// TestAhead: all events come in their order, then what ended the reading, again and again; and the reading ends where the caller stops early.
func TestAhead(t *testing.T) {
	wrong := errors.New("the file is damaged")
	for _, n := range []int{0, 1, aheadBlock - 1, aheadBlock, 10*aheadBlock + 1} {
		for _, stopAt := range []int{0, n / 2, n} {
			read, reading := 0, true
			next, stop := aheadOf(func(e *history.Event) error {
				if !reading {
					t.Error("the file is read behind stop")
				}
				if read == n {
					return wrong
				}
				read++
				*e = history.Event{Txn: uint64(read), Tokens: append(e.Tokens[:0], "token")}
				return nil
			})
			for i := range stopAt {
				if e, err := next(); err != nil || e.Txn != uint64(i+1) || len(e.Tokens) != 1 {
					t.Fatalf("event %d of %d is %v, %v", i+1, n, e, err)
				}
			}
			for range 2 {
				if _, err := next(); stopAt == n && !errors.Is(err, wrong) {
					t.Errorf("behind %d events comes %v", n, err)
				}
			}
			stop()
			reading = false
		}
	}
}
