package report

import (
	"strings"

	"wirecheck/anomaly"
	"wirecheck/oracle"
)

// Wire is a finding as a warning for a client. A PostgreSQL proxy sends it as a NoticeResponse, a MySQL proxy adds it to
// what SHOW WARNINGS gives.
type Wire struct {
	SQLState string // class 01: warning
	Code     uint16 // MySQL's error number
	Message  string
	Detail   string
	Hint     string
	Schema   string
	Table    string
	Finding  string // the id, for PostgreSQL's constraint name
}

// baseCode is the first of our MySQL codes: servers use none from 51000 on.
const baseCode = 51000

// Warning makes the warning of a finding.
func Warning(f oracle.Finding) Wire {
	digit := Digit(&f)
	w := Wire{SQLState: "01WC" + string(rune('0'+digit)), Code: baseCode + uint16(digit), Finding: f.ID}
	w.Message = "wirecheck: " + f.Title() + " (" + string(f.Class) + ", " + f.ID + ")"
	if len(f.Tables) > 0 {
		w.Message = "wirecheck: " + f.Title() + " on " + strings.Join(f.Tables, ", ") + " (" + string(f.Class) + ", " + f.ID + ")"
		w.Table = f.Tables[0]
		if i := strings.LastIndexByte(w.Table, '.'); i >= 0 {
			w.Schema, w.Table = w.Table[:i], w.Table[i+1:]
		}
	}
	var lines []string
	for i := range f.Transactions {
		lines = append(lines, transaction(&f.Transactions[i], f.Level == "mixed")+".")
	}
	lines = append(lines, Argument(&f)...)
	w.Detail = strings.Join(append(lines, "They "+level(&f)), "\n")
	for i, r := range f.Remedies {
		if i > 0 {
			w.Hint += "; or "
		}
		w.Hint += r
	}
	if w.Hint != "" {
		w.Hint = strings.ToUpper(w.Hint[:1]) + w.Hint[1:] + "."
	}
	return w
}

// Digit is the last digit of a finding's SQLSTATE and code.
func Digit(f *oracle.Finding) int {
	if a, ok := anomaly.Of(f.Class, f.Name); ok {
		return a.Digit
	}
	return otherDigit
}

// otherDigit is the digit of findings that the list of anomalies does not have.
const otherDigit = 8
