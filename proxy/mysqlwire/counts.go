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

// rowCounts is what FOUND_ROWS() and ROW_COUNT() say to the client. Statements of ours change them on the server. They run
// only in front of statements that set ROW_COUNT(); FOUND_ROWS(), which COMMIT for one leaves alone, is put back when the
// client asks for it.
type rowCounts struct {
	found    *uint64 // what FOUND_ROWS() says to the client, if statements of ours changed it
	foundNow uint64  // what it says on the server then; the most if that is not known
	changed  int64   // what ROW_COUNT() says to the client
	spoiled  bool    // it says something else on the server
	// disturbed says that questions of ours have run.
	disturbed bool
}

// save keeps what FOUND_ROWS() says before a statement of ours changes it.
func (c *rowCounts) save(l *link) error {
	c.disturbed = true
	c.foundNow = math.MaxUint64
	if c.found != nil {
		return nil
	}
	rows, refused, err := l.ownRows("SELECT FOUND_ROWS()")
	if err != nil || refused != nil || len(rows) != 1 || len(rows[0]) != 1 {
		return err
	}
	c.keep(rows[0][0])
	return nil
}

// keep keeps the answer to FOUND_ROWS(), if nothing is kept. What is no number cannot be put back.
func (c *rowCounts) keep(text string) {
	if c.found != nil {
		return
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		c.found = &n
	}
}

// foundRowsMax bounds the answer of ours with which FOUND_ROWS() is put back.
const foundRowsMax = 100_000

var foundRows = regexp.MustCompile(`(?i)FOUND_ROWS`)

// restoreCounts puts FOUND_ROWS() back before a statement that asks for it, or that may set it or leave it as it is: by a query
// with that many rows.
func (o *observation) restoreCounts(script *rewrite.Script) error {
	c := &o.counts
	if c.found == nil {
		return nil
	}
	may := slices.ContainsFunc(script.Plans, maySetFound)
	if may && o.log.wanted(script.Plans) { // it sets FOUND_ROWS() too
		if err := o.log.fetch(); err != nil {
			return err
		}
	}
	if *c.found > foundRowsMax || *c.found == c.foundNow || !may && !asksFoundRows(script) {
		return nil
	}
	n := *c.found
	c.found = nil
	if n > 1 && !o.traits.forgetsWarnings(script.Plans[0]) {
		if err := o.warnings.keep(&o.link); err != nil {
			return err
		}
	}
	if _, _, err := o.ownRows(rowsQuery(n)); err != nil {
		return err
	}
	return o.restoreChanged()
}

// restoreChanged puts ROW_COUNT() back after statements of ours, if it was 0, as after COMMIT. Other numbers are put into the
// answer to the client's question.
func (o *observation) restoreChanged() (err error) {
	if o.counts.spoiled = o.counts.changed != 0; !o.counts.spoiled {
		_, _, err = o.ownRows("SET @wc_log=@wc_log")
	}
	return err
}

// asksCounts are the questions into whose answers ROW_COUNT() is put.
var asksCounts = regexp.MustCompile(`(?i)^\s*SELECT\s+((?:(?:\w+\(\)|@@[\w.]+)(?:\s+(?:AS\s+)?\w+)?\s*(?:,\s*|;?\s*$))+)$`)

// merge gives the plan that puts ROW_COUNT() into the answer, or p.
func (c *rowCounts) merge(p *rewrite.Plan) *rewrite.Plan {
	if !c.spoiled || !p.Diagnostics {
		return p
	}
	m := asksCounts.FindStringSubmatch(p.Text)
	if m == nil {
		return p
	}
	merged, changed := *p, c.changed
	merged.Conceal = func(row [][]byte) bool {
		if p.Conceal != nil && !p.Conceal(row) {
			return false
		}
		for i, item := range strings.Split(m[1], ",") {
			switch name := strings.ToUpper(strings.TrimSpace(item)); {
			case i >= len(row) || !strings.HasPrefix(name, "ROW_COUNT()"):
			case len(row[i]) == 8: // of the binary protocol
				row[i] = binary.LittleEndian.AppendUint64(nil, uint64(changed))
			default:
				row[i] = strconv.AppendInt(nil, changed, 10)
			}
		}
		return true
	}
	return &merged
}

func asksFoundRows(script *rewrite.Script) bool {
	return slices.ContainsFunc(script.Plans, func(p *rewrite.Plan) bool { return p.Diagnostics && foundRows.MatchString(p.Text) })
}

// rowsQuery is a query that answers n rows.
func rowsQuery(n uint64) string {
	if n <= 1 { // without tables it leaves the client's warnings and errors alone
		return "SELECT 1 LIMIT " + utoa(n)
	}
	digits := "(SELECT 0" + strings.Repeat(" UNION ALL SELECT 0", 9) + ")"
	from := digits + " d0"
	for i, size := 1, uint64(10); size < n; i, size = i+1, size*10 {
		from += "," + digits + " d" + strconv.Itoa(i)
	}
	return "SELECT 1 FROM " + from + " LIMIT " + utoa(n)
}

// note notes that the client's own statement has set FOUND_ROWS().
func (c *rowCounts) note(p *rewrite.Plan, t *traits) {
	if c.found != nil && setsFound(p, t) {
		c.found = nil
	}
}

const behindComments = `(?is)^[\s(]*(?:(?:/\*.*?\*/|#[^\n]*\n|-- [^\n]*\n)\s*)*`

// setsFoundRows are the statements that set FOUND_ROWS(), and maySetFoundRows those that set it if they come to a query, as tried
// on MariaDB 10.11.
var (
	setsFoundRows = regexp.MustCompile(behindComments + `(?:SELECT|WITH|TABLE|DESC|DESCRIBE|EXPLAIN` +
		`|SHOW\s+(?:FULL\s+|SESSION\s+|GLOBAL\s+|OPEN\s+|EXTENDED\s+)*(?:COUNT|TABLES?|COLUMNS|FIELDS|VARIABLES|STATUS|DATABASES|SCHEMAS|ENGINES|INDEX|INDEXES|KEYS|PLUGINS|COLLATION|CHARACTER|CHARSET|TRIGGERS|EVENTS|PROCEDURE|FUNCTION|PACKAGE))\b`)
	maySetFoundRows = regexp.MustCompile(behindComments + `(?:CALL|EXECUTE|BEGIN\s+NOT|(?:SET|DO|INSERT|REPLACE|CREATE\s(?:.*\s)?TABLE)\b.*\bSELECT|(?:UPDATE|DELETE)\b.*\b(?:JOIN|SELECT|USING))\b`)
)

// maySetFound reports whether a statement may set FOUND_ROWS() or leave it as it is.
func maySetFound(p *rewrite.Plan) bool {
	switch p.Verb {
	case "select", "commit", "rollback":
		return false
	case "insert", "update", "delete", "replace": // as most do, without a search
		if !slices.ContainsFunc([]string{"SELECT", "JOIN", "USING"}, func(word string) bool { return containsFold(p.Text, word) }) {
			return false
		}
	}
	return maySetFoundRows.MatchString(p.Text)
}

// containsFold reports whether a text has a word of capital letters, in letters of any case.
func containsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]&^0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

var doStatement = regexp.MustCompile(`(?i)^\s*DO\b`)

// setsFound reports whether a statement sets FOUND_ROWS().
func setsFound(p *rewrite.Plan, t *traits) bool {
	word, _, _ := strings.Cut(p.Text[:min(len(p.Text), 8)], " ")
	switch strings.ToUpper(word) { // as most begin, without a search
	case "SELECT":
		return true
	case "INSERT", "DELETE", "COMMIT", "BEGIN":
		return false
	case "UPDATE":
		return t.UpdateSetsFoundRows
	}
	return setsFoundRows.MatchString(p.Text) || t.UpdateSetsFoundRows && (p.Verb == "update" || doStatement.MatchString(p.Text))
}
