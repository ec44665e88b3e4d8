package source_test

import (
	"slices"
	"testing"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

// TestAuditWithin reads lines of an UPDATE whose trigger inserts, as MariaDB 10.11 writes them: the trigger's statement is none of the client's.
// A statement of another session with a greater id is.
func TestAuditWithin(t *testing.T) {
	const log = `20261121 20:32:28,vm,root,127.0.0.1,8,247,QUERY,shop,'SAVEPOINT paid',0
20261121 20:32:28,vm,root,127.0.0.1,8,249,WRITE,shop,orders,
20261121 20:32:28,vm,root,127.0.0.1,8,249,WRITE,shop,audit,
20261121 20:32:28,vm,root,127.0.0.1,8,250,QUERY,shop,'INSERT INTO audit (what) VALUES (CONCAT(\'order \', NEW.state))',0
20261121 20:32:28,vm,root,127.0.0.1,9,251,QUERY,shop,'SELECT 1',0
20261121 20:32:28,vm,root,127.0.0.1,8,252,QUERY,shop,'INSERT INTO audit (what) VALUES (\'two\')',0
20261121 20:32:28,vm,root,127.0.0.1,8,249,QUERY,shop,'UPDATE orders SET state = 1',0
20261121 20:32:28,vm,root,127.0.0.1,8,253,QUERY,shop,'COMMIT',0
`
	records, report := importBytes(t, []byte(log), source.Options{})
	var got []string
	var update, savepoint *trace.Statement
	for _, r := range records {
		if r.Kind != trace.KindStatement {
			continue
		}
		got = append(got, r.Statement.SQL)
		switch r.Statement.ID {
		case 249:
			update = r.Statement
		case 247:
			savepoint = r.Statement
		}
	}
	if want := []string{"SAVEPOINT paid", "UPDATE orders SET state = 1", "SELECT 1", "COMMIT"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if update == nil || len(update.Tables) != 2 || update.From != savepoint.To {
		t.Errorf("the UPDATE is %+v, want two tables and a beginning behind %+v", update, savepoint)
	}
	if !slices.Contains(report.Other, source.Count{"statements of triggers and routines", 2}) {
		t.Errorf("the report does not count two statements of triggers:\n%s", reportText(t, report))
	}
}
