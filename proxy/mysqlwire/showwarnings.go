package mysqlwire

import (
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/rewrite"
)

var (
	showWarnings  = regexp.MustCompile(`(?is)^\s*SHOW\s+(WARNINGS|ERRORS)(?:\s+LIMIT\s+(\d+)(?:\s*(,|OFFSET)\s*(\d+))?)?\s*;?\s*$`)
	countWarnings = regexp.MustCompile(`(?is)^\s*(?:SHOW\s+COUNT\s*\(\s*\*\s*\)\s+|SELECT\s+@@(?:SESSION\.|LOCAL\.)?)(WARNING|ERROR)(?:S|_COUNT)\s*;?\s*$`)
)

// countOf is a count of warnings or errors in a list of such items.
var countOf = regexp.MustCompile(`(?i)^\s*@@(?:SESSION\.|LOCAL\.)?(WARNING|ERROR)_COUNT\b`)

// listing is a SHOW WARNINGS or SHOW ERRORS under way.
type listing struct {
	offset, limit int
	seen          int       // rows of the server's
	front, behind []warning // of the list, what is asked for
	fronted       bool      // rows of the list stand in front of the server's
}

// has reports whether row i of the whole list was asked for.
func (l *listing) has(i int) bool { return i >= l.offset && i-l.offset < l.limit }

// merge gives the plan that merges our warnings into the answer to a question for them, and the rows that stand around the server's. It gives p itself if p
// is no such question, or if there are none.
func (l *warningList) merge(p *rewrite.Plan) (*rewrite.Plan, *listing) {
	if len(l.front)+len(l.behind)+l.unlisted.warnings == 0 || !p.Diagnostics || p.Hidden > 0 {
		return p, nil
	}
	merged := *p
	if m := countWarnings.FindStringSubmatch(p.Text); m != nil {
		merged.Conceal = addTo(l.counts().of(m[1]))
		return &merged, nil
	}
	if items := asksCounts.FindStringSubmatch(p.Text); items != nil {
		merged.Conceal = l.addCounts(strings.Split(items[1], ","))
		return &merged, nil
	}
	m := showWarnings.FindStringSubmatch(p.Text)
	if m == nil {
		return p, nil
	}
	show := &listing{limit: math.MaxInt, front: askedFor(m[1], l.front), behind: askedFor(m[1], l.behind), fronted: len(l.front) > 0}
	switch {
	case m[3] == ",":
		show.offset, show.limit = atoi(m[2]), atoi(m[4])
	case m[2] != "":
		show.limit, show.offset = atoi(m[2]), atoi(m[4])
	}
	if show.offset > 0 && !strings.EqualFold(m[1], "WARNINGS") { // how many of the server's are errors is not known
		return p, nil
	}
	if show.fronted {
		merged.Conceal = l.inWindow(show)
		return &merged, show
	}
	merged.Conceal = func([][]byte) bool {
		show.seen++
		return true
	}
	return &merged, show
}

// askedFor is the part of a list that is asked for by WARNINGS or ERRORS.
func askedFor(what string, list []warning) []warning {
	if strings.EqualFold(what[:1], "W") {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(w warning) bool { return w.level != "Error" })
}

// ownLimit reports whether a text is a SHOW WARNINGS whose LIMIT is ours to apply, since rows stand in front of the server's.
func (l *warningList) ownLimit(sql string) bool {
	m := showWarnings.FindStringSubmatch(sql)
	return len(l.front) > 0 && m != nil && strings.EqualFold(m[1], "WARNINGS")
}

// inWindow keeps those of the server's rows that the client asked for, behind the ones in front.
func (l *warningList) inWindow(show *listing) func([][]byte) bool {
	at := len(show.front)
	return func([][]byte) bool {
		at++
		show.seen++
		return show.has(at-1) && at <= l.frontMax
	}
}

// rowsInFront are the rows of a SHOW WARNINGS that stand in front of the server's.
func (show *listing) rowsInFront(cols *columns) (rows [][]byte) {
	if show == nil || len(cols.types) != 3 {
		return nil
	}
	for i, w := range show.front {
		if show.has(i) {
			rows = append(rows, w.row(cols))
		}
	}
	return rows
}

// rowsBehind are the rows of a SHOW WARNINGS that stand behind the server's, of which there are so many in the list.
func (show *listing) rowsBehind(cols *columns, server uint16) (rows [][]byte) {
	if show == nil || len(cols.types) != 3 {
		return nil
	}
	skip := max(0, show.offset-int(server))
	for i, w := range show.behind {
		if show.fronted {
			if show.has(len(show.front) + show.seen + i) {
				rows = append(rows, w.row(cols))
			}
			continue
		}
		if i < skip || show.seen >= show.limit {
			continue
		}
		show.seen++
		rows = append(rows, w.row(cols))
	}
	return rows
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil && s != "" {
		return math.MaxInt
	}
	return n
}

// addTo changes a row that consists of a number: in the text protocol its digits, in the binary one eight bytes.
func addTo(n int) func([][]byte) bool {
	return func(row [][]byte) bool {
		if len(row) == 1 {
			row[0] = plus(row[0], n)
		}
		return true
	}
}

// plus adds to one number of a row.
func plus(cell []byte, n int) []byte {
	if v, err := strconv.ParseUint(string(cell), 10, 64); err == nil {
		return strconv.AppendUint(nil, v+uint64(n), 10)
	}
	switch len(cell) {
	case 8:
		return binary.LittleEndian.AppendUint64(nil, binary.LittleEndian.Uint64(cell)+uint64(n))
	case 4:
		return binary.LittleEndian.AppendUint32(nil, binary.LittleEndian.Uint32(cell)+uint32(n))
	}
	return cell
}

// counts counts what is not in the server's own list.
func (l *warningList) counts() counted {
	c := countIn(slices.Concat(l.front, l.behind))
	return counted{c.warnings + l.unlisted.warnings, c.errors + l.unlisted.errors}
}

// of gives the count that WARNING or ERROR names.
func (c counted) of(what string) int {
	if strings.EqualFold(what, "WARNING") {
		return c.warnings
	}
	return c.errors
}

// addCounts changes a row of which some items are counts of warnings or of errors.
func (l *warningList) addCounts(items []string) func([][]byte) bool {
	counts := l.counts()
	return func(row [][]byte) bool {
		for i, item := range items {
			if m := countOf.FindStringSubmatch(item); i < len(row) && m != nil {
				row[i] = plus(row[i], counts.of(m[1]))
			}
		}
		return true
	}
}
