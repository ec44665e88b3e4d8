package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/trace/flow"
)

// maxTold is how many columns of one row a sentence shows.
const maxTold = 4

// telling are the values of a row that was read which matter to the finding: of the columns that a statement of it assigned, or else the first ones.
func (t *teller) telling(e *oracle.Edge, values []oracle.Value) (list []oracle.Value) {
	for _, v := range values {
		if slices.ContainsFunc(t.f.Edges, func(o oracle.Edge) bool {
			return o.Row.Table == e.Row.Table && (o.Kind != oracle.EdgeWR && assigns(o.ToValues, v.Column) || o.Kind != oracle.EdgeRW && assigns(o.FromValues, v.Column))
		}) {
			list = append(list, v)
		}
	}
	if list == nil {
		key, _, _ := strings.Cut(e.Name, "=")
		list = slices.DeleteFunc(slices.Clone(values), func(v oracle.Value) bool { return strings.EqualFold(v.Column, key) })
	}
	return list
}

func assigns(values []oracle.Value, column string) bool {
	return slices.ContainsFunc(values, func(v oracle.Value) bool { return strings.EqualFold(v.Column, column) })
}

// did words an act: "read n = 5 in coupon 7", "set n = 4 in coupon 7", "changed coupon 7". Assigned columns whose values are not certain are named behind
// the others: "set at = 9 and n in coupon 7".
func did(a *act) string {
	rows := strings.Join(a.rows, ", ")
	var list, others []string
	for _, v := range a.values {
		if v.Text != "" {
			list = append(list, v.Column+" = "+quoted(v.Text))
		} else if a.what == "changed" {
			others = append(others, v.Column)
		}
	}
	what := a.what
	if len(list) > 0 {
		if what == "inserted" {
			return what + " " + rows + " with " + strings.Join(list, ", ")
		}
		if what != "read" {
			what = "set"
		}
		if a.what == "found" {
			rows += ", as it was already"
		}
	}
	some := func(list []string, most int) string {
		if len(list) > most {
			list = append(list[:most-1], "...")
		}
		return strings.Join(list, ", ")
	}
	told := some(list, maxTold)
	switch {
	case len(list) == 0:
		told = some(others, maxTold)
	case len(others) > 0:
		told += " and " + some(others, max(maxTold-len(list), 2))
	}
	if told == "" {
		return what + " " + rows
	}
	return what + " " + told + " in " + rows
}

// quoted is a value as SQL would write it.
func quoted(text string) string {
	if flow.IsNumber(text) {
		return text
	}
	return "'" + prose.Line(text, 40) + "'"
}

// parameters are a statement's, as a comment behind it.
func parameters(params []string) string {
	if len(params) == 0 {
		return ""
	}
	return "  -- " + prose.Line(strings.Join(params, ", "), prose.Width/2)
}

// lost says what the values show of a lost update: what was read, and that it was no longer so.
func (t *teller) lost() string {
	overwriter, writer := t.overwriter()
	var read, first, last []oracle.Value // what was read, and what the writer and then the overwriter assigned
	for i := range t.f.Edges {
		e := &t.f.Edges[i]
		switch {
		case e.Kind == oracle.EdgeRW && e.To == writer && read == nil:
			read, first = e.FromValues, e.ToValues
		case e.To == overwriter && (e.Kind == oracle.EdgeWW || e.Kind == oracle.EdgeWR && t.f.Changes(overwriter, e.ToStatement)):
			last = e.ToValues
		}
	}
	for _, v := range last {
		was := oracle.ValueOf(read, v.Column)
		if was == "" || !assigns(first, v.Column) {
			continue
		}
		who, other := t.who(overwriter), t.who(writer)
		switch now := oracle.ValueOf(first, v.Column); {
		case differs(was, now):
			set := v.Column
			if v.Text != "" {
				set += " to " + quoted(v.Text)
			}
			return fmt.Sprintf("One of the two changes is lost: when %s set %s, it was no longer the %s that %s had read. Had %s come first, %s would have read %s.",
				who, set, was, who, other, who, now)
		case now != was && !flow.SameNumber(now, was):
			return fmt.Sprintf("One of the two changes may be lost: %s set %s after %s had read %s.", other, v.Column, who, quoted(was))
		}
	}
	return ""
}

// differs reports whether two values are certainly different in a row: the server may make the same of two texts, or round numbers.
func differs(a, b string) bool { return integer(a) && integer(b) && !flow.SameNumber(a, b) }

// serial says what each party would have read had the other one come first, where that is certain.
func (t *teller) serial() string {
	var list []string
	for i := range t.f.Edges {
		e := &t.f.Edges[i]
		if e.Kind != oracle.EdgeRW {
			return ""
		}
		would := ""
		if s := statement(t.f, e.To, e.ToStatement); e.ByCondition() && s != nil && s.Verb == "insert" {
			if would = "would have found " + t.row(e); e.Groups != "" {
				would += " in the group of " + e.Groups
			}
		}
		for _, v := range e.ToValues {
			if was := oracle.ValueOf(e.FromValues, v.Column); would == "" && differs(was, v.Text) {
				would = "would not have read " + v.Column + " = " + was + " in " + t.row(e)
			}
		}
		if would == "" {
			return ""
		}
		list = append(list, fmt.Sprintf("had %s come first, %s %s", t.who(e.To), t.who(e.From), would))
	}
	return capital(strings.Join(list, "; ")) + "."
}

func integer(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}
