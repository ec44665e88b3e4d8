// Package crash is the oracle that needs nothing but the execution itself: a server or a connection that ended although nobody
// asked for it, statements that never end although they wait for nobody, and errors by which a product says that something is wrong within itself.
package crash

import (
	"regexp"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
)

// Descriptor describes the oracle.
var Descriptor = oracle.Oracle{
	Name: "crash",
	Doc:  "the server or a connection ends, a statement does not, or the server reports an internal error\n\nIt needs nothing but the execution.",
}

// Rule is what the oracle holds servers to.
const Rule = "no statement of a client ends the server, a connection, or the server's trust in itself"

// internal is the reason of a product's own class of errors: PostgreSQL's XX (manual, appendix A), and what the backends' tables
// list for the others.
const internal = answer.ReasonInternal

// addresses are where the two ends of a connection were: other places each time.
var addresses = regexp.MustCompile(`\b(tcp|unix) \S+->\S+: `)

// Check looks at one execution.
func Check(s *schedule.Schedule) schedule.Verdict {
	var v schedule.Verdict
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Reason == internal {
			v.Findings = append(v.Findings, finding(s, st, oracle.NameInternal, st.Answer.Err.Text()))
		}
	}
	if s.Crashed || s.Hung {
		var last *schedule.Step
		for i := range s.Steps {
			if s.Steps[i].Effect == answer.EffectGone {
				last = &s.Steps[i]
			}
		}
		text := "the server ended, or a connection that nobody asked it to end"
		if s.Trouble != "" {
			text += ": " + addresses.ReplaceAllString(s.Trouble, "")
		}
		name := oracle.NameCrash
		if s.Hung {
			name, text, last = oracle.NameHang, "no answer, although nobody was seen to keep it from it", s.Silent
			if last == nil {
				text += ": " + s.Trouble
			}
		}
		v.Findings = append(v.Findings, finding(s, last, name, text))
	} else if s.Trouble != "" {
		v.Unknown = s.Trouble
	}
	return v
}

// finding makes a finding; st is the step that it happened in, nil if that is not known.
func finding(s *schedule.Schedule, st *schedule.Step, name, text string) oracle.Finding {
	d := &oracle.Difference{
		Rule:     Rule,
		Expected: oracle.Side{Text: "an answer"}, Observed: oracle.Side{Text: text},
	}
	if st != nil {
		d.Step, d.Session, d.SQL = st.Name, s.Sessions[st.Session].Name, st.Statement.Text
	}
	f := oracle.Finding{Oracle: Descriptor.Name, Kind: oracle.KindViolation, Class: oracle.Crash, Name: name, Level: s.Level, Promised: true, Difference: d, Seen: 1}
	f.ID = f.Fingerprint()
	return f
}
