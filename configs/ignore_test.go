package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func known(t *testing.T, text string) ([]Known, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadKnown(path, false)
}

// TestKnown: an entry holds for what it says, until its last day is over, and for nothing else.
func TestKnown(t *testing.T) {
	day := time.Date(2026, 11, 22, 23, 59, 0, 0, time.UTC)
	for _, tt := range []struct {
		entry string
		want  bool
	}{
		{"id: WC-a75b12", true},
		{"id: WC-a75b13", false},
		{"class: lost update", true},
		{"class: G-SINGLE", true},
		{"class: write skew", false},
		{"table: public.coupon", true},
		{"table: coupon", true},
		{"table: oupon", false},
		{"class: lost update\n    table: coupon", true},
		{"class: lost update\n    table: stock", false},
		{"statements: [select n from coupon, update coupon set n=?, delete from coupon]", true},
		{"statements: [select n from coupon]", false},
		{"class: write skew\n    statements: [select n from coupon, update coupon set n=?]", false},
		{"id: WC-a75b12\n    until: 2026-11-22", true},
		{"id: WC-a75b12\n    until: 2026-11-21", false},
	} {
		list, err := known(t, "ignore:\n  - "+tt.entry+"\n    reason: it is known\n")
		if err != nil || len(list) != 1 {
			t.Fatalf("%q: %v, %v", tt.entry, list, err)
		}
		if got := list[0].Holds("WC-a75b12", []string{"G-single", "lost update"}, []string{"public.coupon"},
			[]string{"select n from coupon", "update coupon set n=?"}, day); got != tt.want {
			t.Errorf("%q: got %v", tt.entry, got)
		}
	}
}

// TestKnownErrors: what is wrong with a file is said, with the entry.
func TestKnownErrors(t *testing.T) {
	for text, want := range map[string]string{
		"ignore:\n  - reason: all of it\n":                                 "ignore[0]: it says of no finding",
		"ignore:\n  - id: WC-a75b12\n":                                     "ignore[0].reason: it has no reason",
		"ignore:\n  - id: a75b12\n    reason: x\n":                         "should look like WC-a75b12",
		"ignore:\n  - id: WC-a75b12\n    reason: x\n    until: tomorrow\n": "should look like 2027-01-31",
		"ignore:\n  - id: WC-a75b12\n    reson: x\n":                       "reson",
		"ignroe:\n": "ignroe",
		"ignore:\n  - id: WC-a75b12\n    reason: x\n---\nignore: []\n": "more than one document",
	} {
		if _, err := known(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if list, err := known(t, ""); err != nil || len(list) != 0 {
		t.Errorf("an empty file: %v, %v", list, err)
	}
	if _, err := LoadKnown(filepath.Join(t.TempDir(), "none"), false); err == nil {
		t.Error("a file that is not there is no error")
	}
	if list, err := LoadKnown(filepath.Join(t.TempDir(), "none"), true); err != nil || list != nil {
		t.Errorf("a file that is about to be written: %v, %v", list, err)
	}
}

// TestAddKnown: what a file has stays, and what is added can be read.
func TestAddKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known.yaml")
	nasty := Known{ID: "WC-a75b12", Statements: []string{"select \"a: b\"->>?", "- x"}, Reason: "lost update: 'a': \"b\" # \u202e - {x}\n* "}
	if err := AddKnown(path, []Known{nasty}); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	if err := os.WriteFile(path, append([]byte("# ours\n"), strings.TrimRight(string(text), "\n")...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := AddKnown(path, []Known{{Class: "write skew", Reason: "x", Until: "2027-01-31"}}); err != nil {
		t.Fatal(err)
	}
	if err := AddKnown(path, nil); err != nil {
		t.Fatal(err)
	}
	list, err := LoadKnown(path, false)
	text, _ = os.ReadFile(path)
	if err != nil || len(list) != 2 || !reflect.DeepEqual(list[0], nasty) || list[1].Until != "2027-01-31" || !strings.HasPrefix(string(text), "# ours\n") {
		t.Errorf("%+v, %v\n%s", list, err, text)
	}
}
