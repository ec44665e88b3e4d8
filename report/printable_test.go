package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"wirecheck/oracle"
)

// hostile is what stands in names, keys, values, tags and statements: an escape sequence, a line end with a line of ours behind it, C1 controls, and
// characters that turn the direction of writing.
const hostile = "x\x1b[2J\r\nnothing found\u202eevil\u2066\u009b31m\x07\x7f"

// attack puts hostile text wherever others' text stands in a finding.
func attack(f oracle.Finding) oracle.Finding {
	f.Tables = []string{"shop." + hostile}
	f.Transactions, f.Edges = slices.Clone(f.Transactions), slices.Clone(f.Edges)
	for i := range f.Transactions {
		x := &f.Transactions[i]
		x.User, x.Client, x.Database, x.Server, x.Tags = hostile, hostile, hostile, hostile, []string{"route=" + hostile}
		x.Statements = slices.Clone(x.Statements)
		for k := range x.Statements {
			x.Statements[k].SQL += " /* " + hostile + " */"
			x.Statements[k].Tags = []string{"code.filepath=" + hostile}
		}
	}
	for i := range f.Edges {
		e := &f.Edges[i]
		e.Row.Table, e.Row.Key, e.Name, e.Text, e.Condition, e.FromVersion = "shop."+hostile, hostile, "id="+hostile, e.Text+hostile, hostile, hostile
	}
	return f
}

// TestHostile: no text of others reaches a form of output as it is, and the finding itself is not changed.
func TestHostile(t *testing.T) {
	r := result(t)
	for i := range r.Findings {
		r.Findings[i] = attack(r.Findings[i])
	}
	a := "evil\u202e"
	r.Findings = append(r.Findings, oracle.Finding{Oracle: "troc", ID: "WC-1", Kind: oracle.KindAnomaly, Class: "troc", Name: hostile, Transactions: []oracle.Transaction{{}},
		Difference: &oracle.Difference{Rule: hostile, Step: hostile, Session: hostile, SQL: hostile, Table: hostile, Reference: []string{hostile}, Reason: hostile, Cause: hostile,
			Expected: oracle.Side{Text: hostile, Columns: nil, Rows: [][]*string{{&a, nil}}}}})
	r.Undecided, r.Source = "error 42P01: "+hostile, "h.jsonl"
	var before bytes.Buffer
	if err := JSON(&before, r); err != nil {
		t.Fatal(err)
	}
	check := func(form, text string) {
		t.Helper()
		for i, c := range text {
			if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
				t.Errorf("%s has %U: %q", form, c, text[max(0, i-60):min(len(text), i+20)])
				return
			}
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "nothing found") {
				t.Errorf("%s has a line that a table's name wrote: %q", form, line)
				return
			}
		}
	}
	for _, format := range Formats {
		var b bytes.Buffer
		if err := Write(&b, r, format); err != nil {
			t.Fatal(err)
		}
		check(format, b.String())
		switch format { // also behind what the format itself escapes
		case "junit":
			var s JUnitSuite
			if err := xml.Unmarshal(b.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			for _, c := range s.Cases {
				check("a name in JUnit", c.Name)
				if c.Failure != nil {
					check("a failure in JUnit", c.Failure.Text+c.Failure.Message)
				}
				if c.Error != nil {
					check("an error in JUnit", c.Error.Message)
				}
			}
		case "sarif":
			var log sarifLog
			if err := json.Unmarshal(b.Bytes(), &log); err != nil {
				t.Fatal(err)
			}
			for _, res := range log.Runs[0].Results {
				check("a message in SARIF", res.Message.Text)
				check("a rule in SARIF", res.RuleID)
				for _, loc := range res.Locations {
					for _, l := range loc.Logical {
						check("a table in SARIF", l.Name)
					}
				}
			}
			for _, n := range log.Runs[0].Invocations[0].Notifications {
				check("a notification in SARIF", n.Message.Text)
			}
		}
	}
	var color, stream, difference bytes.Buffer
	if err := (Look{Color: true}).Text(&color, r.Findings); err != nil {
		t.Fatal(err)
	}
	check("text in colour", strings.NewReplacer("\x1b[1;31m", "", "\x1b[1;33m", "", "\x1b[0m", "").Replace(color.String()))
	for i := range r.Findings {
		w := Warning(r.Findings[i], Reader{Session: r.Findings[i].Session})
		check("a warning", strings.Join([]string{w.Message, w.Detail, w.Hint, w.Schema, w.Table}, "\n"))
		if err := JSONLine(&stream, r.Findings[i]); err != nil {
			t.Fatal(err)
		}
		if r.Findings[i].Difference != nil {
			Difference(&difference, &r.Findings[i])
		}
	}
	check("the stream", stream.String())
	check("a difference", difference.String())

	var after bytes.Buffer
	if err := JSON(&after, r); err != nil || before.String() != after.String() {
		t.Errorf("printing changed the findings: %v", err)
	}
	var back struct{ Findings []oracle.Finding }
	if err := json.Unmarshal(after.Bytes(), &back); err != nil || cmp.Diff(r.Findings[0].Tables, back.Findings[0].Tables) != "" {
		t.Errorf("JSON has other names: %v %q", err, back.Findings[0].Tables)
	}
	harmless := result(t).Findings[0]
	if d := cmp.Diff(harmless, Printable(harmless)); d != "" {
		t.Errorf("a harmless finding is another one:\n%s", d)
	}
}
