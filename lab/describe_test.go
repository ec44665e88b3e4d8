package lab

import (
	"errors"
	"fmt"
	"testing"

	"wirecheck/statement"
)

// TestRemember describes each text once while it is among the last ones, and errors each time.
func TestRemember(t *testing.T) {
	asked := map[string]int{}
	describe := Remember(func(sql string) ([]statement.Statement, error) {
		asked[sql]++
		if sql == "bad" {
			return nil, errors.New("bad")
		}
		return []statement.Statement{{Text: sql}}, nil
	})
	for range 3 {
		if list, err := describe("a"); err != nil || list[0].Text != "a" {
			t.Fatalf("got %v, %v", list, err)
		}
		if _, err := describe("bad"); err == nil {
			t.Fatal("no error")
		}
	}
	for i := range memory / 2 { // a is still there
		if _, err := describe(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := describe("a"); err != nil || asked["a"] != 1 || asked["bad"] != 3 {
		t.Errorf("%v, asked %d and %d times, want 1 and 3", err, asked["a"], asked["bad"])
	}
	for i := range 2 * memory { // and now it is not
		if _, err := describe(fmt.Sprint("x", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := describe("a"); err != nil || asked["a"] != 2 {
		t.Errorf("%v, asked %d times, want 2", err, asked["a"])
	}
}
