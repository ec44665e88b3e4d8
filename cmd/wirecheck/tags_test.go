package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/internal/shop"
	"wirecheck/oracle"
)

// TestTagsAndTimes: a live finding has the times and tags of its statements, and SARIF the places in the code that they name; also with
// --unit transaction, and when the history is judged again.
func TestTagsAndTimes(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		w := newWorld(t, engine, "CREATE TABLE coupon (id int PRIMARY KEY, n int)", "INSERT INTO coupon VALUES (1, 5)")
		scheme := map[string]string{"postgres": "postgres", "mariadb": "mysql"}[engine]
		before := time.Now().UnixNano()
		path := filepath.Join(t.TempDir(), "h.jsonl")
		p, port := front(t, scheme, fmt.Sprintf("%s://127.0.0.1:%d", engine, w.direct.Port), "--format", "json", "--record", path, "--unit", "transaction")
		connect := func() shop.Client {
			target := w.direct
			target.Port = port
			c, err := target.Connect(t.Context(), shop.Driver)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		a, b := connect(), connect()
		tag := func(line int) string {
			return fmt.Sprintf(" /*code.filepath='app%%2Fbuy.py',code.lineno='%d',controller='shop',route='%%2Fbuy'*/", line)
		}
		do(t, a, "BEGIN", "SELECT n FROM coupon WHERE id = 1"+tag(10))
		do(t, b, "BEGIN", "SELECT n FROM coupon WHERE id = 1"+tag(10), "UPDATE coupon SET n = 4 WHERE id = 1"+tag(12), "COMMIT")
		do(t, a, "UPDATE coupon SET n = 4 WHERE id = 1"+tag(12), "COMMIT")
		a.Close()
		b.Close()
		if status := p.end(t); status != int(exitFound) {
			t.Fatalf("exit status %d, %s", status, p.stderr.String())
		}
		var out struct{ Findings []oracle.Finding }
		if err := json.Unmarshal(p.stdout.Bytes(), &out); err != nil || len(out.Findings) != 1 {
			t.Fatalf("%v: %s", err, p.stdout.String())
		}
		after := time.Now().UnixNano()
		within := func(what string, at int64) {
			if at < before || at > after {
				t.Errorf("%s: %s has the time %d, not within %d and %d", engine, what, at, before, after)
			}
		}
		f := out.Findings[0]
		within("the finding", f.FirstAt)
		for _, x := range f.Transactions {
			within("the end of "+x.Label, x.EndedAt)
			for _, s := range x.Statements {
				within(s.SQL, s.At)
				if !slices.Contains(s.Tags, "route=/buy") || !slices.Contains(s.Tags, "controller=shop") || !slices.Contains(s.Tags, "code.filepath=app/buy.py") {
					t.Errorf("%s: %s has the tags %q", engine, s.SQL, s.Tags)
				}
			}
		}
		sarif, said, status := command(t, "check", "--format", "sarif", "--unit", "transaction", path)
		for _, want := range []string{`"uri": "app/buy.py"`, `"startLine": 10`, `"startLine": 12`, `"fullyQualifiedName": `} {
			if strings.Count(sarif, want) == 0 || status != exitFound {
				t.Errorf("%s: status %d, SARIF lacks %s: %s%s", engine, status, want, sarif, said)
			}
		}
	}
}
