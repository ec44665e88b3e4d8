package mysqlwire

import (
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
}

// save keeps what FOUND_ROWS() says before a statement of ours changes it.
func (c *rowCounts) save(l *link) error {
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
// with that many rows. Where ROW_COUNT() was 0, as after COMMIT, it is put back too; a statement that asks for both after
// another change of rows gets -1 for it.
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
	if _, _, err := o.ownRows(rowsQuery(n)); err != nil || c.changed != 0 {
		return err
	}
	_, _, err := o.ownRows("SET @wc_log=@wc_log")
	return err
}

func asksFoundRows(script *rewrite.Script) bool {
	return slices.ContainsFunc(script.Plans, func(p *rewrite.Plan) bool { return p.Diagnostics && foundRows.MatchString(p.Text) })
}

// rowsQuery is a query that answers n rows.
func rowsQuery(n uint64) string {
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
	return p.Verb != "select" && maySetFoundRows.MatchString(p.Text)
}

var doStatement = regexp.MustCompile(`(?i)^\s*DO\b`)

// setsFound reports whether a statement sets FOUND_ROWS().
func setsFound(p *rewrite.Plan, t *traits) bool {
	if word, _, ok := strings.Cut(p.Text[:min(len(p.Text), 8)], " "); ok && strings.EqualFold(word, "SELECT") {
		return true // as most do, without a search
	}
	return setsFoundRows.MatchString(p.Text) || t.UpdateSetsFoundRows && (p.Verb == "update" || doStatement.MatchString(p.Text))
}
