package replay

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// DivergenceKind is how an answer differs from the trace's.
type DivergenceKind string

// The kinds.
const (
	DivergedError    DivergenceKind = "error"    // one of the two failed, or with another code
	DivergedRows     DivergenceKind = "rows"     // other values
	DivergedCount    DivergenceKind = "count"    // another number of rows
	DivergedAffected DivergenceKind = "affected" // another number of rows inserted, updated or deleted
	DivergedLost     DivergenceKind = "lost"     // the connection ended
	// DivergedVolatile: the values differ, as those of a statement with now(), random() or the like always may.
	DivergedVolatile DivergenceKind = "volatile"
)

// Divergence is how far a replay differs from its trace.
type Divergence struct {
	// Compared is for how many statements the trace tells something that can be compared; Same how many were the same in all of that.
	Compared int                    `json:"compared"`
	Same     int                    `json:"same"`
	Kinds    map[DivergenceKind]int `json:"kinds"`
	// Generated counts those that differ in nothing but values that the server makes, by what made them: a clock, a counter, chance.
	Generated map[string]int `json:"generated,omitempty"`
	First     []Diverged     `json:"first"` // the first ones
}

func newDivergence() Divergence {
	return Divergence{Kinds: map[DivergenceKind]int{}, Generated: map[string]int{}, First: []Diverged{}}
}

// Count is how many statements differ, volatile ones aside.
func (d *Divergence) Count() (n int) {
	for kind, many := range d.Kinds {
		if kind != DivergedVolatile {
			n += many
		}
	}
	return n
}

// Diverged is one statement that differs.
type Diverged struct {
	Step    int            `json:"step"`
	Session uint64         `json:"session"`
	Kind    DivergenceKind `json:"kind"`
	SQL     string         `json:"sql"`
	Want    string         `json:"capture"`
	Got     string         `json:"replay"`
	Tags    []trace.Tag    `json:"tags,omitempty"`
}

// comparer compares answers with those of the trace, as far as it tells.
type comparer struct {
	result  *Divergence
	errors  bool // the trace tells of errors
	dialect lex.Dialect
	made    *Generated
	kinds   []string // what made the values by which the last answers differed
}

func (c *comparer) step(s *Step) {
	kind, want, got, compared := c.differ(s)
	if !compared {
		return
	}
	c.result.Compared++
	if kind == "" && len(c.kinds) > 0 {
		c.result.Generated[strings.Join(c.kinds, ", ")]++
		return
	}
	if kind == "" {
		c.result.Same++
		return
	}
	c.result.Kinds[kind]++
	if len(c.result.First) < maxShown {
		c.result.First = append(c.result.First, Diverged{Step: s.N, Session: s.Session, Kind: kind, SQL: prose.Line(s.SQL, prose.Width), Want: want, Got: got, Tags: s.Tags()})
	}
}

// differ finds the first difference; compared is false if the trace tells nothing.
func (c *comparer) differ(s *Step) (kind DivergenceKind, want, got string, compared bool) {
	st := s.Statement
	c.kinds = nil
	if s.Lost != nil {
		return DivergedLost, "", s.Lost.Error(), true
	}
	was, is := "", ""
	if st.Error != nil {
		was = st.Error.Code
	}
	if s.Answer.Err != nil {
		is = s.Answer.Err.Code
	}
	known := c.errors || st.Error != nil
	switch {
	case known && was != is && !(st.Error != nil && s.Answer.Err != nil && was == ""):
		return DivergedError, errorText(st.Error), errorText(s.Answer.Err), true
	case is != "" || was != "":
		return "", "", "", known
	}
	if len(st.Results) == 0 {
		return "", "", "", known
	}
	if len(st.Results) != len(s.Answer.Results) {
		return DivergedCount, fmt.Sprintf("%d results", len(st.Results)), fmt.Sprintf("%d results", len(s.Answer.Results)), true
	}
	compared = known
	for i := range st.Results {
		kind, want, got, told := compareResult(&st.Results[i], &s.Answer.Results[i])
		compared = compared || told
		if kind == "" {
			continue
		}
		if made, ok := c.made.result(s, &st.Results[i], &s.Answer.Results[i]); kind == DivergedRows && ok {
			c.kinds = append(c.kinds, made...)
			continue
		}
		if s.varies(&st.Results[i], len(s.Answer.Results[i].Rows)) {
			kind = DivergedVolatile
		}
		return kind, want, got, true
	}
	return "", "", "", compared
}

// varies reports whether an answer of so many rows may be another one on the same database.
func (s *Step) varies(was *trace.Result, rows int) bool {
	if len(s.verbs()) == 1 {
		if n, ok := s.verbs()[0].Cut(); ok {
			return was.Count == trace.Unknown || was.Partial || was.Count >= int64(n) && rows >= n
		}
	}
	return s.Volatile != ""
}

func compareResult(was *trace.Result, is *answer.Result) (kind DivergenceKind, want, got string, told bool) {
	rows := is.Columns != nil
	if was.Count != trace.Unknown && (rows || was.Count > 0) {
		told = true
		if n := int64(len(is.Rows)); n != was.Count {
			return DivergedCount, prose.Count(was.Count, "row"), prose.Count(n, "row"), true
		}
	}
	if was.Affected != trace.Unknown && !rows {
		told = true
		if is.Affected != was.Affected {
			return DivergedAffected, prose.Count(was.Affected, "row"), prose.Count(is.Affected, "row"), true
		}
	}
	if was.Digest == "" || !rows {
		return "", "", "", told
	}
	now := make([][]trace.Value, len(is.Rows))
	var d trace.Digest
	for i, row := range is.Rows {
		now[i] = trace.Values(row)
		d.Add(now[i])
	}
	if d.String() == was.Digest {
		return "", "", "", true
	}
	if !was.Partial {
		if sameRows(was.Rows, now) {
			return "", "", "", true // in another order, which the statement may leave open
		}
		a, b := firstDifferent(was.Rows, now)
		return DivergedRows, rowText(a), rowText(b), true
	}
	return DivergedRows, "digest " + was.Digest, "digest " + d.String(), true
}

// sameRows compares rows without regard to their order.
func sameRows(a, b [][]trace.Value) bool {
	texts := func(rows [][]trace.Value) (list []string) {
		for _, r := range rows {
			list = append(list, rowText(r))
		}
		return slices.Sorted(slices.Values(list))
	}
	return slices.Equal(texts(a), texts(b))
}

func firstDifferent(a, b [][]trace.Value) (x, y []trace.Value) {
	for i := range min(len(a), len(b)) {
		if rowText(a[i]) != rowText(b[i]) {
			return a[i], b[i]
		}
	}
	return nil, nil
}

func rowText(row []trace.Value) string {
	parts := make([]string, len(row))
	for i, v := range row {
		switch {
		case v.Null:
			parts[i] = "NULL"
		case v.Binary:
			parts[i] = fmt.Sprintf("%x", v.Text)
		default:
			parts[i] = fmt.Sprintf("%q", v.Text)
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func errorText(e *answer.Error) string {
	if e == nil {
		return "done"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", e.Code, e.Message))
}
