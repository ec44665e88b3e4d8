package wss_test

import (
	"regexp"
	"strings"

	"wirecheck/rewrite"
)

var (
	updateText = regexp.MustCompile(`(?is)^UPDATE\s+(\w+)\s+SET\s+(.*?)(?:\s+WHERE\s+(.*))?$`)
	deleteText = regexp.MustCompile(`(?is)^DELETE\s+FROM\s+(\w+)(?:\s+WHERE\s+(.*))?$`)
	insertText = regexp.MustCompile(`(?is)^(INSERT|REPLACE)\s+(IGNORE\s+)?INTO\s+(\w+)\s*(\([^)]*\))?\s*(VALUES|SELECT)(.*)$`)
	selectText = regexp.MustCompile(`(?is)^SELECT\s+.*?(?:\sFROM\s+(\w+)(?:\s+(?:AS\s+)?\w+)?(?:\s+WHERE\s+(.*?))?(?:\s+ORDER\s+BY.*?)?)?(\s+FOR\s+UPDATE)?$`)
	subquery   = regexp.MustCompile(`(?is)\(\s*SELECT\s+.*?FROM\s+(\w+)`)
	levelText  = regexp.MustCompile(`(?is)^SET\s+(SESSION\s+)?TRANSACTION\s+ISOLATION\s+LEVEL\s+(.*)$`)
)

// describeOne describes the plain statements of these tests.
func describeOne(text string) rewrite.Statement {
	st := rewrite.Statement{Text: text, Verb: "other"}
	upper := strings.ToUpper(text)
	control := func(v rewrite.ControlVerb) rewrite.Statement {
		st.Control.Verb = v
		return st
	}
	table := func(name string, target, read bool, place rewrite.Place) {
		st.Tables = append(st.Tables, rewrite.TableUse{Kind: rewrite.SourceTable, Name: name, SQL: name, Ref: name, Target: target, Read: read, Place: place})
	}
	switch {
	case strings.HasPrefix(upper, "BEGIN"), strings.HasPrefix(upper, "START TRANSACTION"):
		st.Begin.Optimistic = strings.Contains(upper, "OPTIMISTIC")
		st.Begin.ReadOnly = strings.Contains(upper, "READ ONLY")
		return control(rewrite.ControlBegin)
	case upper == "COMMIT":
		return control(rewrite.ControlCommit)
	case strings.HasPrefix(upper, "ROLLBACK TO"):
		return control(rewrite.ControlRollbackTo)
	case upper == "ROLLBACK":
		return control(rewrite.ControlRollback)
	case strings.HasPrefix(upper, "SAVEPOINT"):
		return control(rewrite.ControlSavepoint)
	case strings.HasPrefix(upper, "SET "):
		st.Verb = "set"
		st.Control.Ends = false
		if m := levelText.FindStringSubmatch(text); m != nil {
			st.Control = rewrite.Control{Verb: rewrite.ControlLevel, Level: strings.ToLower(m[2]), Scope: rewrite.ScopeNext}
			if m[1] != "" {
				st.Control.Scope = rewrite.ScopeSession
			}
		}
		return st
	case strings.HasPrefix(upper, "CREATE"), strings.HasPrefix(upper, "ALTER"), strings.HasPrefix(upper, "DROP"):
		st.Verb, st.DDL = "ddl", true
		return st
	}
	switch {
	case updateText.MatchString(text):
		m := updateText.FindStringSubmatch(text)
		st.Verb, st.Clauses = "update", rewrite.Clauses{From: m[1], Where: m[3]}
		table(m[1], true, true, rewrite.PlaceMain)
		for _, a := range strings.Split(m[2], ",") {
			name, value, _ := strings.Cut(a, "=")
			st.Assignments = append(st.Assignments, rewrite.Assignment{Column: strings.TrimSpace(name), Expr: strings.TrimSpace(value)})
		}
		st.Predicate = true
	case deleteText.MatchString(text):
		m := deleteText.FindStringSubmatch(text)
		st.Verb, st.Clauses = "delete", rewrite.Clauses{From: m[1], Where: m[2]}
		table(m[1], true, true, rewrite.PlaceMain)
		st.Predicate = true
	case insertText.MatchString(text):
		m := insertText.FindStringSubmatch(text)
		st.Verb, st.Insert, st.Ignore = strings.ToLower(m[1]), &rewrite.Insert{}, m[2] != ""
		table(m[3], true, false, rewrite.PlaceMain)
		if strings.EqualFold(m[5], "SELECT") {
			st.Insert.Select = "SELECT" + m[6]
			if f := regexp.MustCompile(`(?i)\bFROM\s+(\w+)`).FindStringSubmatch(m[6]); f != nil {
				table(f[1], false, true, rewrite.PlaceSelect)
				st.Predicate = true
			}
		} else {
			st.Insert.Rows = make([][]string, strings.Count(m[6], "(")) // the number is what is looked at
		}
		st.Insert.Conflict = strings.Contains(upper, "ON DUPLICATE") || strings.Contains(upper, "ON CONFLICT")
	case selectText.MatchString(text):
		m := selectText.FindStringSubmatch(text)
		st.Verb, st.Clauses = "select", rewrite.Clauses{From: m[1], Where: m[2]}
		if m[1] != "" {
			table(m[1], false, true, rewrite.PlaceMain)
		}
		if m[3] != "" {
			st.Locking.Lock = rewrite.LockUpdate
		}
		st.Predicate = m[1] != ""
	}
	for _, m := range subquery.FindAllStringSubmatch(text, -1) {
		if st.Verb != "select" || len(st.Tables) > 0 {
			table(m[1], false, true, rewrite.PlaceSubquery)
			st.HasSubquery = true
		}
	}
	for _, name := range []string{"RAND()", "UUID()", "NOW()", "RANDOM()"} {
		if strings.Contains(upper, name) {
			st.Volatile = "it calls " + name
		}
	}
	st.Variables = strings.Contains(text, "@")
	return st
}
