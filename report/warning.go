package report

import (
	"fmt"
	"strconv"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history/prose"
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

// Warning makes the warning of a finding for one session.
func Warning(f oracle.Finding, r Reader) Wire {
	f = Printable(For(f, r))
	digit := Digit(&f)
	w := Wire{SQLState: "01WC" + string(rune('0'+digit)), Code: baseCode + uint16(digit), Finding: f.ID}
	if len(f.Tables) > 0 {
		w.Table = f.Tables[0]
		if i := strings.LastIndexByte(w.Table, '.'); i >= 0 {
			w.Schema, w.Table = w.Table[:i], w.Table[i+1:]
		}
	}
	s := tell(&f, r.Session)
	w.Message = "wirecheck: " + s.headline + " (" + f.ID + ")"
	var lines []string
	for i, a := range s.acts {
		line := fmt.Sprintf("%d. %s", i+1, a.text)
		if a.sql != "" {
			line += ":\n   " + a.sql
		}
		lines = append(lines, line)
	}
	if s.effect != "" {
		lines = append(lines, s.effect)
	}
	if s.level != "" {
		lines = append(lines, s.level)
	}
	lines = append(lines, proof(&f))
	w.Detail = strings.Join(lines, "\n")
	var hints []string
	for i, r := range f.Remedies {
		hint := withCost(r)
		if r.SQL != "" {
			hint += ":\n   " + prose.Statement(r.SQL, prose.Width)
		}
		if i > 0 {
			hint = "or " + hint
		}
		hints = append(hints, capital(hint))
	}
	w.Hint = strings.Join(hints, "\n")
	return w
}

// proof says how the session gets the whole of a finding.
func proof(f *oracle.Finding) string { return "Proof: SELECT wirecheck.explain('" + f.ID + "')" }

// Again makes the warning of a finding of which the session has heard.
func Again(f oracle.Finding, r Reader) Wire {
	w := Warning(f, r)
	w.Message = fmt.Sprintf("wirecheck: %s again, %s time: %s", f.ID, ordinal(f.Seen), tell(new(Printable(For(f, r))), r.Session).headline)
	w.Detail, w.Hint = "", ""
	return w
}

// Variant makes the warning of a finding whose group the session has heard of, by a finding with another id. It tells what happened, but not again what to do.
func Variant(f oracle.Finding, r Reader, known string) Wire {
	w := Warning(f, r)
	w.Message = fmt.Sprintf("wirecheck: %s, a variant of %s: %s", f.ID, known, tell(new(Printable(For(f, r))), r.Session).headline)
	w.Hint = "" // that of the group, most likely
	return w
}

// ordinal is a number as one says it: 1st, 2nd, 3rd, 4th, 11th, 21st.
func ordinal(n int) string {
	end := "th"
	if tens := n % 100; tens < 11 || tens > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end
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
