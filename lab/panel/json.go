package panel

import (
	"wirecheck/answer"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/isolation"
)

// The JSON form of what a permutation did. docs/reference/result-formats.md describes it.

// EventJSON is an event of the schedule.
type EventJSON struct {
	Kind    string   `json:"kind"`
	Session string   `json:"session"`
	Step    string   `json:"step,omitempty"`
	SQL     string   `json:"sql"`
	Wait    string   `json:"wait,omitempty"`
	For     []string `json:"for,omitempty"`
	Why     string   `json:"why,omitempty"`
	Effect  string   `json:"effect,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Retry   bool     `json:"retry,omitempty"`
	answerJSON
}

type answerJSON struct {
	Results []resultJSON `json:"results,omitempty"`
	Error   *errorJSON   `json:"error,omitempty"`
	Notices []noticeJSON `json:"notices,omitempty"`
}

type resultJSON struct {
	Columns  []string    `json:"columns,omitempty"`
	Rows     [][]*string `json:"rows,omitempty"` // null is NULL
	Affected int64       `json:"affected,omitempty"`
}

type errorJSON struct {
	Code     string `json:"code"`
	SQLState string `json:"sqlstate,omitempty"`
	Severity string `json:"severity,omitempty"`
	Message  string `json:"message"`
	Detail   string `json:"detail,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

type noticeJSON struct {
	Severity string `json:"severity,omitempty"`
	Code     string `json:"code,omitempty"`
	Message  string `json:"message,omitempty"`
	Channel  string `json:"channel,omitempty"`
	Payload  string `json:"payload,omitempty"`
}

type outputJSON struct {
	Session string `json:"session,omitempty"` // empty: the connection that executes setup, final queries and teardown
	SQL     string `json:"sql"`
	answerJSON
}

// TableJSON is a table at the end.
type TableJSON struct {
	Name string `json:"name"`
	resultJSON
}

// runJSON is what happened.
type runJSON struct {
	Setup    []outputJSON `json:"setup,omitempty"`
	Events   []EventJSON  `json:"events,omitempty"`
	Finals   []outputJSON `json:"finals,omitempty"`
	Tables   []TableJSON  `json:"tables,omitempty"`
	Teardown []outputJSON `json:"teardown,omitempty"`
	// Coverage is absent if the isolation oracle did not judge.
	Coverage *isolation.Coverage `json:"coverage,omitempty"`
}

func jsonOf(spec *scenario.Spec, d *Judgement) runJSON {
	r := runJSON{Setup: outputsJSON(spec, d.Setup), Teardown: outputsJSON(spec, d.Teardown)}
	for _, ev := range d.Events {
		r.Events = append(r.Events, eventOf(spec, ev))
	}
	for i, sql := range spec.Finals() {
		if i < len(d.Finals) {
			r.Finals = append(r.Finals, outputJSON{SQL: sql, answerJSON: answerOf(d.Finals[i])})
		}
	}
	for _, t := range d.Tables {
		r.Tables = append(r.Tables, TableJSON{Name: t.Name, resultJSON: resultOf(answer.Result{Columns: t.Columns, Rows: t.Rows})})
	}
	if d.Judged {
		r.Coverage = &d.Isolation.Coverage
	}
	return r
}

func eventOf(spec *scenario.Spec, ev lab.Event) EventJSON {
	e := EventJSON{
		Kind: string(ev.Kind), Session: spec.Sessions[ev.Step.Session].Name, Step: ev.Step.Name, SQL: ev.Step.SQL, Wait: string(ev.Wait),
		Why: ev.Why, Effect: string(ev.Outcome.Effect), Reason: string(ev.Outcome.Reason), Retry: ev.Outcome.Retry, answerJSON: answerOf(ev.Answer),
	}
	for _, s := range ev.For {
		e.For = append(e.For, spec.Sessions[s].Name)
	}
	return e
}

func outputsJSON(spec *scenario.Spec, outputs []lab.Output) (list []outputJSON) {
	for _, o := range outputs {
		j := outputJSON{SQL: o.SQL, answerJSON: answerOf(o.Answer)}
		if o.Session >= 0 {
			j.Session = spec.Sessions[o.Session].Name
		}
		list = append(list, j)
	}
	return list
}

func answerOf(a answer.Answer) (j answerJSON) {
	for _, r := range a.Results {
		j.Results = append(j.Results, resultOf(r))
	}
	if e := a.Err; e != nil {
		j.Error = &errorJSON{Code: e.Code, SQLState: e.SQLState, Severity: e.Severity, Message: e.Message, Detail: e.Detail, Hint: e.Hint}
	}
	for _, n := range a.Notices {
		j.Notices = append(j.Notices, noticeJSON{Severity: n.Severity, Code: n.Code, Message: n.Message, Channel: n.Channel, Payload: n.Payload})
	}
	return j
}

func resultOf(r answer.Result) resultJSON {
	return resultJSON{Columns: answer.Names(r.Columns), Rows: answer.Strings(r.Rows), Affected: r.Affected}
}
