package sqlite

import (
	"slices"
	"strings"
)

// steadyNames are the functions that are known to give the same for the same arguments and database (sqlite.org/lang_corefunc.html,
// lang_mathfunc.html, json1.html, lang_aggfunc.html, windowfunctions.html), and words that look like a function's call.
var steadyNames = nameSet(`abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower ltrim max min nullif octet_length
printf quote replace round rtrim sign soundex sqlite_version substr substring trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob
acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
json jsonb json_array jsonb_array json_array_length json_error_position json_extract jsonb_extract json_insert jsonb_insert json_object jsonb_object json_patch
json_pretty json_remove json_replace json_set json_type json_valid json_quote
avg count sum total group_concat string_agg json_group_array json_group_object
row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
cast exists in values over filter as and or not on using when then else where having by from join set select between is collate raise materialized partition case returning conflict`)

// aggregateNames are the aggregate functions; min and max are if they have one argument.
var aggregateNames = nameSet("avg count sum total group_concat string_agg json_group_array json_group_object jsonb_group_array jsonb_group_object min max median percentile percentile_cont percentile_disc")

// orderedNames show the order of rows unless they are given one; orderedWindows within OVER.
var (
	orderedNames   = nameSet("group_concat string_agg json_group_array json_group_object")
	orderedWindows = nameSet("row_number ntile lag lead first_value last_value nth_value")
)

var varyingNames = map[string]string{
	"random": "random values", "randomblob": "random values", "date": "the clock", "time": "the clock", "datetime": "the clock", "julianday": "the clock",
	"unixepoch": "the clock", "strftime": "the clock", "timediff": "the clock", "current_date": "the clock", "current_time": "the clock", "current_timestamp": "the clock",
	"changes": sessionReason, "total_changes": sessionReason, "last_insert_rowid": sessionReason,
}

const sessionReason = "the session"

func nameSet(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

// vary says why a statement may give another result another time.
func (d *describer) vary(i, end int) {
	defined := d.defined()
	for ; i < end; i++ {
		if d.tokens[i].kind == tokName && d.is(i+1, "(") && !defined[i] {
			d.volatile("function " + d.at(i) + " is not known")
		}
		if d.tokens[i].kind != tokWord {
			continue
		}
		name := strings.ToLower(d.at(i))
		dotted := d.is(i-1, ".")
		switch why := varyingNames[name]; {
		case strings.HasPrefix(name, "current_") && why != "" && !dotted:
			d.volatile(name + " tells of " + why)
		case name == "rowid" || name == "oid" || name == "_rowid_":
			d.volatile("it names the rowid, which is not among the columns")
		case name == "limit" && !dotted && !d.ordered(i):
			d.volatile("LIMIT without ORDER BY")
		case name == "over" && !dotted && i+1 < end && d.tokens[i+1].kind <= tokName && d.is(i-1, ")"):
			d.volatile("a window that is defined elsewhere")
		case name == "over" && d.is(i+1, "(") && d.windowShows(i):
			d.volatile("a window function without ORDER BY")
		}
		if !d.is(i+1, "(") || dotted || defined[i] {
			continue
		}
		switch why := varyingNames[name]; {
		case why != "":
			d.st.Variables = d.st.Variables || why == sessionReason
			d.volatile("function " + name + " tells of " + why)
		case orderedNames[name] && !d.orders(i+1) && !d.is(d.close(i+1)+1, "OVER"):
			d.volatile("aggregate " + name + " shows the order of rows")
		case !steadyNames[name]:
			d.volatile("function " + name + " is not known")
		}
	}
}

// defined are the names in front of a parenthesis that are no calls: the table of an INSERT, or a common table expression, with a
// list of columns.
func (d *describer) defined() map[int]bool {
	at := map[int]bool{}
	for i := 1; i < len(d.tokens); i++ {
		if !d.is(i, "(") || d.tokens[i-1].kind > tokName {
			continue
		}
		n := i - 1
		if d.is(n-1, ".") {
			n -= 2
		}
		as := d.close(i) + 1
		if d.is(as, "AS") && d.is(as+1, "NOT", "MATERIALIZED") {
			as += 1
		}
		at[i-1] = d.is(n-1, "INTO") || d.is(as, "AS", "NOT", "MATERIALIZED") && d.is(n-1, "WITH", "RECURSIVE", ",") && !d.is(as+1, "NULL", "IN") || into(d, n, i)
	}
	return at
}

// into reports whether the name at n, with a list of columns at i, is the table of an INSERT that has an alias: INTO t AS a (b).
func into(d *describer, n, i int) bool { return d.is(n-1, "AS") && d.is(n-3, "INTO") && d.is(i, "(") }

// orders reports whether there is an ORDER BY within the parentheses at i.
func (d *describer) orders(i int) bool {
	for j := i + 1; j < d.close(i); j++ {
		if d.tokens[j].depth == d.tokens[i].depth+1 && d.seq(j, "ORDER", "BY") {
			return true
		}
	}
	return false
}

// ordered reports whether an ORDER BY stands in front of the LIMIT at i.
func (d *describer) ordered(i int) bool {
	depth := d.tokens[i].depth
	for j := i - 1; j >= 0 && d.tokens[j].depth >= depth; j-- {
		if d.tokens[j].depth == depth && d.seq(j, "ORDER", "BY") {
			return true
		}
		if d.tokens[j].depth == depth && d.is(j, "SELECT") {
			return false
		}
	}
	return false
}

// windowShows reports whether the window function in front of the OVER at i shows an order that it is not given.
func (d *describer) windowShows(i int) bool {
	if d.orders(i+1) || d.tokens[i+2].kind == tokWord && !d.is(i+2, "PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS") {
		return false // a named window: it has been looked at where it is defined, or is not known
	}
	frame := false
	for j := i + 2; j < d.close(i+1); j++ {
		frame = frame || d.is(j, "ROWS")
	}
	open := d.opened(i - 1)
	return frame || open > 0 && (orderedWindows[strings.ToLower(d.at(open-1))] || orderedNames[strings.ToLower(d.at(open-1))])
}

// opened is the token that opens the parenthesis that token i closes, or -1.
func (d *describer) opened(i int) int {
	for j := i - 1; j >= 0 && d.is(i, ")"); j-- {
		if d.is(j, "(") && d.close(j) == i {
			return j
		}
	}
	return -1
}

// calls reports whether the tokens from i to end call aggregate and window functions, not looking into queries within.
func (d *describer) calls(i, end int) (aggregate, window bool) {
	for ; i < end; i++ {
		if d.isQuery(i) {
			i = d.close(i)
			continue
		}
		name := strings.ToLower(d.at(i))
		if d.tokens[i].kind != tokWord || !d.is(i+1, "(") || d.is(i-1, ".") {
			continue
		}
		after := d.close(i+1) + 1
		if d.is(after, "FILTER") && d.is(after+1, "(") {
			after = d.close(after+1) + 1
		}
		switch {
		case d.is(after, "OVER"):
			window = true
		case aggregateNames[name]:
			several := (name == "min" || name == "max") && len(d.split(i+2, d.close(i+1), d.tokens[i+1].depth+1)) > 1
			aggregate = aggregate || !several
		}
	}
	return aggregate, window
}

// bare looks for columns of a query with groups that are not grouped: SQLite takes them from any row of the group
// (sqlite.org/lang_select.html, section 2.5, "bare columns").
func (d *describer) bare(list []clause) {
	grouped := map[string]bool{}
	for _, k := range list {
		for i := k.start; i < k.end && k.word == "GROUP"; i++ {
			if name, ok := d.name(i); ok {
				grouped[strings.ToLower(name)] = true
			}
		}
	}
	for _, k := range list {
		if k.word != "SELECT" && k.word != "HAVING" && k.word != "ORDER" {
			continue
		}
		for i := k.start + 1; i < k.end; i++ {
			name, ok := d.name(i)
			switch {
			case d.isQuery(i):
				i = d.close(i)
			case ok && d.is(i+1, "("):
				if aggregateNames[strings.ToLower(name)] {
					i = d.close(i + 1)
				}
				if d.is(i+1, "FILTER") && d.is(i+2, "(") {
					i = d.close(i + 2)
				}
			case ok && d.is(i-1, "AS"), ok && d.is(i+1, "."), ok && d.tokens[i].kind == tokWord && slices.Contains(bareWords, strings.ToUpper(name)):
			case ok && !grouped[strings.ToLower(name)], d.is(i, "*") && (d.is(i-1, "SELECT", ",", ".") || d.is(i+1, ",")):
				d.volatile("a column that is not grouped may be of any row of its group")
				return
			}
		}
	}
}

// bareWords stand between columns and are none.
var bareWords = strings.Fields(`SELECT DISTINCT ALL AS BY ASC DESC AND OR NOT IS NULL TRUE FALSE CASE WHEN THEN ELSE END IN BETWEEN LIKE GLOB ESCAPE COLLATE NOCASE RTRIM BINARY FILTER WHERE
OVER PARTITION ORDER ROWS RANGE PRECEDING FOLLOWING CURRENT ROW UNBOUNDED CAST INTEGER INT TEXT REAL BLOB NUMERIC HAVING NULLS FIRST LAST ISNULL NOTNULL FROM`)
