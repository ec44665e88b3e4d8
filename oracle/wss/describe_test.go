package wss_test

import (
	"regexp"
	"strings"

	"wirecheck/statement"
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
func describeOne(text string) statement.Statement {
	st := statement.Statement{Text: text, Verb: "other"}
	upper := strings.ToUpper(text)
	control := func(v statement.ControlVerb) statement.Statement {
		st.Control.Verb = v
		return st
	}
	table := func(name string, target, read bool, place statement.Place) {
		st.Tables = append(st.Tables, statement.TableUse{Kind: statement.SourceTable, Name: name, SQL: name, Ref: name, Target: target, Read: read, Place: place})
	}
	switch {
	case strings.HasPrefix(upper, "BEGIN"), strings.HasPrefix(upper, "START TRANSACTION"):
		st.Begin.Optimistic = strings.Contains(upper, "OPTIMISTIC")
		st.Begin.ReadOnly = strings.Contains(upper, "READ ONLY")
		return control(statement.ControlBegin)
	case upper == "COMMIT":
		return control(statement.ControlCommit)
	case strings.HasPrefix(upper, "ROLLBACK TO"):
		return control(statement.ControlRollbackTo)
	case upper == "ROLLBACK":
		return control(statement.ControlRollback)
	case strings.HasPrefix(upper, "SAVEPOINT"):
		return control(statement.ControlSavepoint)
	case strings.HasPrefix(upper, "SET "):
		st.Verb = "set"
		st.Control.Ends = false
		if m := levelText.FindStringSubmatch(text); m != nil {
			st.Control = statement.Control{Verb: statement.ControlLevel, Level: strings.ToLower(m[2]), Scope: statement.ScopeNext}
			if m[1] != "" {
				st.Control.Scope = statement.ScopeSession
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
		st.Verb, st.Clauses = "update", statement.Clauses{From: m[1], Where: m[3]}
		table(m[1], true, true, statement.PlaceMain)
		for _, a := range strings.Split(m[2], ",") {
			name, value, _ := strings.Cut(a, "=")
			st.Assignments = append(st.Assignments, statement.Assignment{Column: strings.TrimSpace(name), Expr: strings.TrimSpace(value)})
		}
		st.Predicate = true
	case deleteText.MatchString(text):
		m := deleteText.FindStringSubmatch(text)
		st.Verb, st.Clauses = "delete", statement.Clauses{From: m[1], Where: m[2]}
		table(m[1], true, true, statement.PlaceMain)
		st.Predicate = true
	case insertText.MatchString(text):
		m := insertText.FindStringSubmatch(text)
		st.Verb, st.Insert, st.Ignore = strings.ToLower(m[1]), &statement.Insert{}, m[2] != ""
		table(m[3], true, false, statement.PlaceMain)
		if strings.EqualFold(m[5], "SELECT") {
			st.Insert.Select = "SELECT" + m[6]
			if f := regexp.MustCompile(`(?i)\bFROM\s+(\w+)`).FindStringSubmatch(m[6]); f != nil {
				table(f[1], false, true, statement.PlaceSelect)
				st.Predicate = true
			}
		} else {
			st.Insert.Rows = make([][]string, strings.Count(m[6], "(")) // the number is what is looked at
		}
		st.Insert.Conflict = strings.Contains(upper, "ON DUPLICATE") || strings.Contains(upper, "ON CONFLICT")
	case selectText.MatchString(text):
		m := selectText.FindStringSubmatch(text)
		st.Verb, st.Clauses = "select", statement.Clauses{From: m[1], Where: m[2]}
		if m[1] != "" {
			table(m[1], false, true, statement.PlaceMain)
		}
		if m[3] != "" {
			st.Locking.Lock = statement.LockUpdate
		}
		st.Predicate = m[1] != ""
	}
	for _, m := range subquery.FindAllStringSubmatch(text, -1) {
		if st.Verb != "select" || len(st.Tables) > 0 {
			table(m[1], false, true, statement.PlaceSubquery)
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
