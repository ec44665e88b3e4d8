package rewrite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"wirecheck/statement/condition"
)

// Ask is what a statement asks of one table: a predicate read, see history.PredicateRead.
type Ask struct {
	Table string // as history.Row.Table
	// Where is the condition. Its values stand in conditions made with condition.Open, as constants of the text or as parameters.
	Where   condition.Condition
	Extreme *Extreme        // what the answer shows of the rows, if it is no more than this
	Limit   condition.Value // how many rows are returned at most, in the same form; nil: all
	// Beyond holds for the rows that LIMIT does not hide, see the function of that name. Without an operator it is not known.
	Beyond condition.Condition
	// Alike is not certain for rows that may be among those that OFFSET leaves out, though Beyond does not hold for them.
	Alike condition.Condition
	// Single says that the answer has one row for all that were found (an aggregate without GROUP BY): a LIMIT hides none of them, unless it is 0.
	Single bool
	// Counted says the same of a query around the one that found the rows: the LIMIT may hide some of them from it.
	Counted bool
	Around  bool            // the rows are those of a query in FROM, and the answer is made of them: it does not tell whether OFFSET left out all
	Skip    condition.Value // how many of the rows are left out in front (OFFSET), in the same form; nil: none
	// Current says that the statement locks or writes the rows, so that products with locks show it what is current.
	Current bool
	// Joined says that the table is joined with others, or that rows are grouped: a row of it may be in several rows of the answer. Merged says that a row of
	// the answer may stand for several that were found: groups, and DISTINCT.
	Joined, Merged bool
	// Folds says that the answer has one row for all that look alike (DISTINCT), and does not show the primary key: one that comes or goes may change nothing.
	Folds bool
	// Pinned says that the condition fixes a whole unique key: no row but the one that was found can matter. With a parameter that is a number and compared
	// with a text it does not (MySQL family).
	Pinned bool
	// Exists says that the statement is SELECT EXISTS (...) or SELECT ... WHERE EXISTS (...): it tells whether there is a row, and not which. The latter
	// tells it ByRow: its answer has a row, or none.
	Exists, ByRow bool
	// Absent says that it is SELECT NOT EXISTS (...), which tells the opposite.
	Absent bool
	// Met says that the statement is an INSERT which passes over a row that is in the way (ON CONFLICT DO NOTHING), and that only a row for which the
	// condition holds can be: where it has no row in its answer, it met one. It saw what was current.
	Met bool
	// Within says that the condition is that of a subquery of a write, which is certainly evaluated where the statement has rows in its answer or changes
	// some, and tells nothing where it does not. On products with locks, levels above READ COMMITTED show it what is current.
	Within bool
	// Beside says that the condition is that of a subquery of a query, which is certainly evaluated where the answer has rows, and tells nothing where it has none.
	Beside bool
	// Lacked says that the condition is one for which there was no row beside those of the answer: their keys are the list in it. Without rows in its
	// answer the statement tells nothing of it.
	Lacked bool
	// Bars says that rows for which the condition holds, but for the lists in it, keep others out of the answer, which does not name them.
	Bars bool
	// Groups says what decides whether the answer shows a group of rows, and List that this list of the answer has what is known of each, or ListOfLog that the session's log has
	// the values of the rows. Without these, Where has a part that
	// is certain of the groups of the answer alone (condition.OfGroups). nil: nothing hides groups, or that is not evaluated.
	Groups *condition.Groups
	List   int
	// Having says that HAVING decides whether the answer has its only row, which shows aggregates of all rows that were found. Without it the statement tells nothing.
	Having bool
	// Searched says that the server certainly looks for rows, see Looks.
	Searched bool
	// Relation is the table, where it matters whether the server may decide the condition without looking for rows (MySQL family).
	Relation *Relation
	// Types are the types of the columns with which parameters are compared.
	Types map[int]string
}

// ListOfLog is Ask.List where the log tells the rows of groups.
const ListOfLog = -1

// AsksExistence reports whether the statement only tells whether there are rows, see Ask.Exists.
func (p *Plan) AsksExistence() bool { return len(p.Asks) > 0 && p.Asks[0].Exists }

// ReadLists reads the values of the hidden columns that Plan.Lists counts.
func ReadLists(cells [][]byte) (lists [][]condition.Value) {
	for _, text := range cells {
		var raw []any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if text == nil || d.Decode(&raw) != nil {
			lists = append(lists, nil)
			continue
		}
		list := make([]condition.Value, len(raw))
		for i, v := range raw {
			if v != nil {
				s := fmt.Sprint(v)
				list[i] = &s
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// ReadMoments reads the values of the hidden columns that Plan.Moments counts, up to the first one that is not told.
func ReadMoments(cells [][]byte) (values []condition.Value) {
	for _, list := range ReadLists(cells) {
		if list == nil {
			break
		}
		values = append(values, list...)
	}
	return values
}

// Bind gives the Ask with the values of parameters.
func (a Ask) Bind(values func(n int) (condition.Value, bool)) Ask {
	a.Where = a.Where.Bind(values)
	count := func(v condition.Value) condition.Value { return boundCount(v, values) }
	a.Limit, a.Skip, a.Extreme = count(a.Limit), count(a.Skip), a.Extreme.mapped(count)
	a.Groups = a.Groups.Where(func(c condition.Condition) condition.Condition { return c.Bind(values) })
	a.Types = nil
	return a
}

// boundCount gives a number of rows with the value of its parameter, if it has one that is known.
func boundCount(v condition.Value, values func(n int) (condition.Value, bool)) condition.Value {
	if v == nil || !strings.HasPrefix(*v, "$") {
		return v
	}
	bound := condition.Open("=", condition.Number, "count", v).Bind(values)
	if bound.Op != "=" || bound.Values[0] == nil {
		return v
	}
	text := "=" + *bound.Values[0]
	return &text
}

// BehindComparison is why it is not known what a change in the table of a subquery means, with whose value a condition compares a column.
const BehindComparison = "a comparison with a subquery may come out the same behind a change"

// LookAlike is the reason for not evaluating a statement that Folds rows.
const LookAlike = "DISTINCT hides rows that look alike"

// SeveralTables is the reason for not evaluating what a statement asks of more than one table.
const SeveralTables = "it reads several tables or a subquery"

// SkipsRows is the reason for not evaluating a statement that Skips.
const SkipsRows = "OFFSET hides rows"

// Skips reports whether the statement may leave out rows that it found, by its OFFSET.
func (a *Ask) Skips() bool {
	if a.Skip == nil {
		return false
	}
	text, ok := condition.Constant(*a.Skip)
	return !ok || strings.Trim(text, "0") != "" || text == ""
}

// Hides reports whether LIMIT may hide rows. Of the table, found versions are known, all of them if whole. answer is how many rows the answer has, 0 if
// that is not known.
func (a *Ask) Hides(found, answer int, whole bool) bool {
	if a.Limit == nil {
		return false
	}
	switch {
	case a.Single:
		found, whole = 0, true
	case a.Merged && answer > 0:
		found, whole = answer, true
	case a.Joined && found+answer > 0: // a row of the table may be in several of them, or none
		found, whole = answer, whole && answer > 0
	}
	return !whole || !a.Allows(found+1)
}

// Allows reports whether LIMIT certainly allows n rows. Values of parameters must be bound.
func (a *Ask) Allows(n int) bool {
	if a.Limit == nil {
		return true
	}
	text, ok := condition.Constant(*a.Limit)
	limit, err := strconv.ParseInt(text, 10, 64)
	return ok && err == nil && limit >= int64(n)
}

// Shifted gives the Ask of another text that differs in its literals only: literal gives the other text's literal for the place of one, if
// there is one. An empty one says that it is the same.
func (a Ask) Shifted(literal func(at int) (now int, text string, ok bool)) Ask {
	shifted := func(v condition.Value) condition.Value { return shiftedValue(v, literal) }
	a.Where = a.Where.Mapped(shifted)
	a.Limit, a.Skip, a.Extreme = shifted(a.Limit), shifted(a.Skip), a.Extreme.mapped(shifted)
	a.Groups = a.Groups.Where(func(c condition.Condition) condition.Condition { return c.Mapped(shifted) })
	return a
}

func shiftedValue(v condition.Value, literal func(at int) (now int, text string, ok bool)) condition.Value {
	if v == nil {
		return nil
	}
	at, ok := condition.Place(*v)
	if !ok {
		return v
	}
	now, text, ok := literal(at)
	switch old, _ := condition.Constant(*v); {
	case !ok:
		text = "$0" // of which nobody knows the value
		return &text
	case text == "":
		text = old
	case text[0] == '\'':
		text = strings.ReplaceAll(text[1:len(text)-1], "''", "'")
	case strings.HasPrefix(old, "-"):
		text = "-" + text
	}
	text = fmt.Sprintf("@%d=%s", now, text)
	return &text
}
