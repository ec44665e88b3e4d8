package schedule

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/statement"
)

var (
	// upkeep are statements that change how rows are kept, found and named, and neither rows nor columns nor what constraints hold: indexes that are not
	// unique, other names for indexes, partitions by a hash, a table that is rebuilt, or renamed and renamed back, statistics, caches.
	upkeep = regexp.MustCompile(`(?is)^\s*(create\s+index\s|alter\s+index\s+\S+\s+rename\s+to\s+\S+\s*$|alter\s+table\s+\S+\s+(force|rename\s+(index|key)\s+\S+\s+to\s+\S+|rebuild\s+partition\s+\S+|` +
		`add\s+partition\s+partitions\s+\d+|coalesce\s+partition\s+\d+)\s*$|` +
		`optimize\s+table\s+\S+\s*$|reindex\s|vacuum(\s+full)?\s+\S+\s*$|flush\s+tables\s+\S+\s*$|analyze\s)`)
	unparted = regexp.MustCompile(`(?is)^\s*alter\s+table\s+\S+\s+remove\s+partitioning\s*$`)
	listed   = regexp.MustCompile(`(?is)\bpartition\s+by\s+list\b`) // its partitions may not take every value
	renaming = regexp.MustCompile("(?is)^\\s*rename\\s+table\\s+(\\S+)\\s+to\\s+(\\S+)\\s*,\\s*(\\S+)\\s+to\\s+(\\S+)\\s*$")
	lacking  = regexp.MustCompile("(?is)^\\s*alter\\s+table\\s+\\S+\\s+alter\\s+column\\s+[`\"]?(\\w+)[`\"]?\\s+set\\s+default\\s+null\\s*$")
	dropping = regexp.MustCompile("(?is)^\\s*drop\\s+index\\s+(?:if\\s+exists\\s+)?[`\"]?(\\w+)[`\"]?(\\s+on\\s+\\S+)?\\s*$")
)

// Upkeep reports whether a statement changes nothing that a statement's answer may depend on, so that a schedule with it can be judged as one without it.
// It may commit, and wait, as any other one. Of a dropped index the setup tells whether it was unique, and of a column whether it had a default.
func Upkeep(setup []string, st *statement.Statement) bool {
	if m := renaming.FindStringSubmatch(st.Text); m != nil {
		return strings.EqualFold(m[1], m[4]) && strings.EqualFold(m[2], m[3])
	}
	if m := lacking.FindStringSubmatch(st.Text); m != nil {
		had := regexp.MustCompile("(?is)\\b" + m[1] + "\\b[^,]*\\b(default|not\\s+null|auto_increment|serial|identity)\\b")
		return !slices.ContainsFunc(setup, had.MatchString)
	}
	if unparted.MatchString(st.Text) {
		return !slices.ContainsFunc(setup, listed.MatchString)
	}
	m := dropping.FindStringSubmatch(st.Text)
	if m == nil {
		return upkeep.MatchString(st.Text)
	}
	plain := regexp.MustCompile("(?i)\\bcreate\\s+index\\s+(if\\s+not\\s+exists\\s+)?[`\"]?" + m[1] + "\\b")
	return slices.ContainsFunc(setup, plain.MatchString)
}

// skips finds SKIP LOCKED, also in a subquery.
var skips = regexp.MustCompile(`(?i)\bskip\s+locked\b`)

// Skips reports whether a statement leaves out rows that others have locked. Which ones depends on which index others locked and on which it meets the
// locks: for a covering index InnoDB leaves the record itself alone (MySQL manual, 17.7.3), and which index is taken depends on statistics, which two
// databases do not share.
func Skips(st *statement.Statement) bool { return skips.MatchString(st.Text) }
