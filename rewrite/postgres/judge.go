package postgres

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
)

// doubts are the reasons why not everything of a statement is seen.
type doubts struct {
	whys    []string
	idle    int  // tables on whose rows nothing depends, see kept
	below   int  // LIMIT n of groups,
	bounded bool // or of a parameter
}

// missing notes why something is not seen.
func (d *doubts) missing(format string, args ...any) {
	if why := fmt.Sprintf(format, args...); !slices.Contains(d.whys, why) {
		d.whys = append(d.whys, why)
	}
}

// limitGroups notes that LIMIT may hide groups: an answer of fewer rows shows that it hid none.
func (d *doubts) limitGroups(s *pg.SelectStmt) {
	if s.LimitOffset == nil && len(d.whys) == 0 {
		d.below = int(s.LimitCount.GetAConst().GetIval().GetIval())
		d.bounded = s.LimitCount.GetParamRef() != nil && s.LimitOption == pg.LimitOption_LIMIT_OPTION_COUNT
	}
	d.missing("LIMIT hides groups")
}

// judge says whether what a statement reads and writes may be observed exactly, and why not.
type judge struct {
	*scene
	doubts
}

// instrumentation is what is put into a statement's text so that its answer tells row versions.
type instrumentation struct {
	judge
	edits   []rewrite.Edit
	parts   []part   // the hidden columns
	arms    [][]part // UNION ALL: the parts of each arm
	drained []string // the common table expressions that are used several times, of which all is told
	inner   int      // hidden columns of subqueries so far
	linked  bool     // a condition was added to WHERE
	wrapped bool     // the statement became a subquery,
	bare    bool     // with OFFSET 0
	written []written
	// partly says that not all of the select list of the subquery around is needed; sided that the item of FROM is a side of an outer join.
	partly bool
	sided  int
	// distinct says that the answer shows each row once, by keys: what is added must be the same for the same row. unneeded are tables on which it does not
	// depend.
	distinct bool
	unneeded map[*pg.RangeVar]bool
	opens    *pg.SelectStmt // in which views are seen; nil: in none
	views    map[string]map[string]rewrite.Shows
	counted  *pg.SelectStmt // it has read everything if it has fewer rows than its LIMIT
}

// maxColumns is below the 1664 columns that a result can have (manual, appendix K).
const maxColumns = 1500

// wide reports whether a target list may have so many columns that it has no place for more.
func wide(outputs []*pg.Node, list []source) bool {
	n := len(outputs)
	for _, s := range list {
		n += len(s.rel.Columns)
	}
	return n > maxColumns
}
