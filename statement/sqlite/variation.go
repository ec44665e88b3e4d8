package sqlite

import (
	"slices"
	"strings"

	"wirecheck/statement"
)

// steadyNames are the functions that are known to give the same for the same arguments and database (sqlite.org/lang_corefunc.html,
// lang_mathfunc.html, json1.html, lang_aggfunc.html, windowfunctions.html), and words that look like a function's call.
var steadyNames = statement.Names(`abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower ltrim max min nullif octet_length
printf quote replace round rtrim sign soundex sqlite_version substr substring trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob
acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
json jsonb json_array jsonb_array json_array_length json_error_position json_extract jsonb_extract json_insert jsonb_insert json_object jsonb_object json_patch
json_pretty json_remove json_replace json_set json_type json_valid json_quote
avg count sum total group_concat string_agg json_group_array json_group_object
row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
cast exists in values over filter as and or not on using when then else where having by from join set select between is collate raise materialized partition case returning conflict`)

// aggregateNames are the aggregate functions; min and max are if they have one argument.
var aggregateNames = statement.Names("avg count sum total group_concat string_agg json_group_array json_group_object jsonb_group_array jsonb_group_object min max median percentile percentile_cont percentile_disc")

// orderedNames show the order of rows unless they are given one; orderedWindows within OVER.
var (
	orderedNames   = statement.Names("group_concat string_agg json_group_array json_group_object")
	orderedWindows = statement.Names("row_number ntile lag lead first_value last_value nth_value")
)

var varyingNames = statement.Varying(map[string]string{
	"random values": "random randomblob",
	"the clock":     "date time datetime julianday unixepoch strftime timediff current_date current_time current_timestamp",
	sessionReason:   "changes total_changes last_insert_rowid",
})

const sessionReason = "the session"

// vary says why a statement may give another result another time.
func (d *describer) vary(i, end int) {
	defined := d.defined()
	for ; i < end; i++ {
		if d.Tokens[i].Kind == statement.TokenName && d.Is(i+1, "(") && !defined[i] {
			d.volatile("function " + d.At(i) + " is not known")
		}
		if d.Tokens[i].Kind != statement.TokenWord {
			continue
		}
		name := strings.ToLower(d.At(i))
		dotted := d.Is(i-1, ".")
		switch why := varyingNames[name]; {
		case strings.HasPrefix(name, "current_") && why != "" && !dotted:
			d.volatile(name + " tells of " + why)
		case name == "rowid" || name == "oid" || name == "_rowid_":
			d.volatile("it names the rowid, which is not among the columns")
		case name == "limit" && !dotted && !d.ordered(i):
			d.volatile(statement.UnorderedLimit)
		case name == "over" && !dotted && i+1 < end && d.Tokens[i+1].Kind <= statement.TokenName && d.Is(i-1, ")"):
			d.volatile("a window that is defined elsewhere")
		case name == "over" && d.Is(i+1, "(") && d.windowShows(i):
			d.volatile("a window function without ORDER BY")
		}
		if !d.Is(i+1, "(") || dotted || defined[i] {
			continue
		}
		switch why := varyingNames[name]; {
		case why != "":
			d.st.Variables = d.st.Variables || why == sessionReason
			d.volatile("function " + name + " tells of " + why)
		case orderedNames[name] && !d.orders(i+1) && !d.Is(d.Close(i+1)+1, "OVER"):
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
	for i := 1; i < len(d.Tokens); i++ {
		if !d.Is(i, "(") || d.Tokens[i-1].Kind > statement.TokenName {
			continue
		}
		n := i - 1
		if d.Is(n-1, ".") {
			n -= 2
		}
		as := d.Close(i) + 1
		if d.Is(as, "AS") && d.Is(as+1, "NOT", "MATERIALIZED") {
			as += 1
		}
		at[i-1] = d.Is(n-1, "INTO") || d.Is(as, "AS", "NOT", "MATERIALIZED") && d.Is(n-1, "WITH", "RECURSIVE", ",") && !d.Is(as+1, "NULL", "IN") || into(d, n, i)
	}
	return at
}

// into reports whether the name at n, with a list of columns at i, is the table of an INSERT that has an alias: INTO t AS a (b).
func into(d *describer, n, i int) bool { return d.Is(n-1, "AS") && d.Is(n-3, "INTO") && d.Is(i, "(") }

// orders reports whether there is an ORDER BY within the parentheses at i.
func (d *describer) orders(i int) bool {
	for j := i + 1; j < d.Close(i); j++ {
		if d.Tokens[j].Depth == d.Tokens[i].Depth+1 && d.Seq(j, "ORDER", "BY") {
			return true
		}
	}
	return false
}

// ordered reports whether an ORDER BY stands in front of the LIMIT at i.
func (d *describer) ordered(i int) bool {
	depth := d.Tokens[i].Depth
	for j := i - 1; j >= 0 && d.Tokens[j].Depth >= depth; j-- {
		if d.Tokens[j].Depth == depth && d.Seq(j, "ORDER", "BY") {
			return true
		}
		if d.Tokens[j].Depth == depth && d.Is(j, "SELECT") {
			return false
		}
	}
	return false
}

// windowShows reports whether the window function in front of the OVER at i shows an order that it is not given.
func (d *describer) windowShows(i int) bool {
	if d.orders(i+1) || d.Tokens[i+2].Kind == statement.TokenWord && !d.Is(i+2, "PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS") {
		return false // a named window: it has been looked at where it is defined, or is not known
	}
	frame := false
	for j := i + 2; j < d.Close(i+1); j++ {
		frame = frame || d.Is(j, "ROWS")
	}
	open := d.opened(i - 1)
	return frame || open > 0 && (orderedWindows[strings.ToLower(d.At(open-1))] || orderedNames[strings.ToLower(d.At(open-1))])
}

// opened is the token that opens the parenthesis that token i closes, or -1.
func (d *describer) opened(i int) int {
	for j := i - 1; j >= 0 && d.Is(i, ")"); j-- {
		if d.Is(j, "(") && d.Close(j) == i {
			return j
		}
	}
	return -1
}

// calls reports whether the tokens from i to end call aggregate and window functions, not looking into queries within.
func (d *describer) calls(i, end int) (aggregate, window bool) {
	for ; i < end; i++ {
		if d.isQuery(i) {
			i = d.Close(i)
			continue
		}
		name := strings.ToLower(d.At(i))
		if d.Tokens[i].Kind != statement.TokenWord || !d.Is(i+1, "(") || d.Is(i-1, ".") {
			continue
		}
		after := d.Close(i+1) + 1
		if d.Is(after, "FILTER") && d.Is(after+1, "(") {
			after = d.Close(after+1) + 1
		}
		switch {
		case d.Is(after, "OVER"):
			window = true
		case aggregateNames[name]:
			several := (name == "min" || name == "max") && len(d.Split(i+2, d.Close(i+1))) > 1
			aggregate = aggregate || !several
		}
	}
	return aggregate, window
}

// bare looks for columns of a query with groups that are not grouped: SQLite takes them from any row of the group
// (sqlite.org/lang_select.html, section 2.5, "bare columns").
func (d *describer) bare(list []statement.Clause) {
	grouped := map[string]bool{}
	for _, k := range list {
		for i := k.Start; i < k.End && k.Word == "GROUP"; i++ {
			if name, ok := d.Name(i); ok {
				grouped[strings.ToLower(name)] = true
			}
		}
	}
	for _, k := range list {
		if k.Word != "SELECT" && k.Word != "HAVING" && k.Word != "ORDER" {
			continue
		}
		for i := k.Start + 1; i < k.End; i++ {
			name, ok := d.Name(i)
			switch {
			case d.isQuery(i):
				i = d.Close(i)
			case ok && d.Is(i+1, "("):
				if aggregateNames[strings.ToLower(name)] {
					i = d.Close(i + 1)
				}
				if d.Is(i+1, "FILTER") && d.Is(i+2, "(") {
					i = d.Close(i + 2)
				}
			case ok && d.Is(i-1, "AS"), ok && d.Is(i+1, "."), ok && d.Tokens[i].Kind == statement.TokenWord && slices.Contains(bareWords, strings.ToUpper(name)):
			case ok && !grouped[strings.ToLower(name)], d.Is(i, "*") && (d.Is(i-1, "SELECT", ",", ".") || d.Is(i+1, ",")):
				d.volatile("a column that is not grouped may be of any row of its group")
				return
			}
		}
	}
}

// bareWords stand between columns and are none.
var bareWords = strings.Fields(`SELECT DISTINCT ALL AS BY ASC DESC AND OR NOT IS NULL TRUE FALSE CASE WHEN THEN ELSE END IN BETWEEN LIKE GLOB ESCAPE COLLATE NOCASE RTRIM BINARY FILTER WHERE
OVER PARTITION ORDER ROWS RANGE PRECEDING FOLLOWING CURRENT ROW UNBOUNDED CAST INTEGER INT TEXT REAL BLOB NUMERIC HAVING NULLS FIRST LAST ISNULL NOTNULL FROM`)
