package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"wirecheck/internal/testserver"
	"wirecheck/lab/explore"
)

// productSchema is what the captures of these tests begin with.
const productSchema = `CREATE TABLE product (id INT PRIMARY KEY, stock INT, views INT, title VARCHAR(20));
CREATE TABLE doctor (name VARCHAR(20) PRIMARY KEY, on_call INT);
INSERT INTO product VALUES (1, 5, 0, 'tea'), (2, 5, 0, 'cup'), (3, 5, 0, 'pot'), (4, 5, 0, 'jug'), (5, 5, 0, 'pan');
INSERT INTO doctor VALUES ('ada', 1), ('bob', 1);
`

// overlapping gives the statements of two transactions, of which the second one has read before the first one writes and commits.
func overlapping(one, other []string) (lines []string) {
	add := func(session string, list []string) {
		for _, sql := range list {
			lines = append(lines, session+": "+sql)
		}
	}
	add("8", one[:2])
	add("9", other[:2])
	add("8", one[2:])
	add("9", other[2:])
	return lines
}

// captured is an application at work: a true lost update, and near misses of it, each on a row of its own.
func captured() []string {
	buy := func(id string) []string {
		return transaction("buy", "SELECT id, stock FROM product WHERE id = "+id, "UPDATE product SET stock = 4 WHERE id = "+id)
	}
	return slices.Concat(
		overlapping(buy("1"), buy("1")),
		overlapping(buy("2"), transaction("rename", "SELECT title FROM product WHERE id = 2", "UPDATE product SET title = 'mug' WHERE id = 2")),
		overlapping(buy("3"), transaction("view", "SELECT title FROM product WHERE id = 3", "UPDATE product SET views = views + 1 WHERE id = 3")),
		// An ORM that saves all columns: what the other one changed is lost; and one that saves a column as it was, of which nothing is.
		overlapping(buy("4"), transaction("save", "SELECT id, stock, title FROM product WHERE id = 4", "UPDATE product SET stock = 5, title = 'jar' WHERE id = 4",
			"UPDATE doctor SET on_call = 1 WHERE name = 'ada'")),
		overlapping(transaction("touch", "SELECT id, stock, title FROM product WHERE id = 5", "UPDATE product SET stock = 5, title = 'wok' WHERE id = 5"), buy("5")),
	)
}

// compared runs wirecheck replay --what-if, as text and as JSON.
func compared(t *testing.T, want exitStatus, args ...string) (*explore.Comparison, string) {
	t.Helper()
	args = append([]string{"replay", "--log-level", "warn", "--unit", "transaction"}, args...)
	text, said, status := command(t, args...)
	if status != want {
		t.Fatalf("exit status %d, want %d; printed:\n%s\nsaid:\n%s", status, want, text, said)
	}
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 80 && !strings.Contains(line, "/") {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	out, said, status := command(t, append(args, "--format", "json")...)
	var all map[string]any
	err := json.Unmarshal([]byte(out), &all)
	if err != nil || status != want {
		t.Fatalf("JSON: exit status %d, want %d: %v\n%s", status, want, err, said)
	}
	for _, run := range all["runs"].([]any) {
		delete(run.(map[string]any), "report") // its coverage is read by no program of ours
	}
	var c explore.Comparison
	again, err := json.Marshal(all)
	if err = errors.Join(err, json.Unmarshal(again, &c)); err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() {
		t.Log(text)
	}
	return &c, text
}

// refusedOf gives the counts of a shape; nil: nothing of it was refused.
func refusedOf(c *explore.Comparison, list []*explore.RefusedShape, name string) *explore.RefusedShape {
	for _, s := range list {
		if s.Shape > 0 && c.Shapes[s.Shape-1].Name == name {
			return s
		}
	}
	return nil
}

// expectRefused compares what was refused: for each shape how many for a true conflict, and how many only for the row.
func expectRefused(t *testing.T, c *explore.Comparison, list []*explore.RefusedShape, want map[string][2]int) {
	t.Helper()
	for name, n := range want {
		s := refusedOf(c, list, name)
		if s == nil || s.True != n[0] || s.RowLevel != n[1] || s.Unknown != 0 {
			t.Errorf("%s: %+v, want %d true conflicts and %d of the row only", name, s, n[0], n[1])
		}
	}
	for _, s := range list {
		if _, ok := want[c.Shapes[s.Shape-1].Name]; !ok {
			t.Errorf("%s was refused: %+v", c.Shapes[s.Shape-1].Name, s)
		}
	}
}

// anomalies are those that come (more than as it was) or go.
func anomaliesOf(a *explore.Alternative) (comes, goes []string) {
	for _, f := range a.Anomalies {
		switch {
		case f.AsWas == 0:
			comes = append(comes, f.Title)
		case f.Count == 0:
			goes = append(goes, f.Title)
		}
	}
	return comes, goes
}

// TestWhatIfSnapshotIsolation: MariaDB's innodb_snapshot_isolation refuses five transactions of a capture, of which two would have lost an update.
func TestWhatIfSnapshotIsolation(t *testing.T) {
	t.Parallel()
	path, url, schema := loggedTrace(t, captured()...), serverURL(testserver.MariaDB(t)), file(t, productSchema)
	c, text := compared(t, exitFound, path, "--engine", url, "--snapshot", schema, "--session-sql", "SET SESSION innodb_snapshot_isolation = OFF",
		"--what-if", "setting=innodb_snapshot_isolation=ON", "--what-if", "level=read-committed")
	was, on, weaker := c.Runs[0], c.Runs[1], c.Runs[2]
	if len(was.Refused)+len(weaker.Refused) > 0 || on.Refused["1020"] != 5 || on.MoreRefused != 5 || on.NotSent != 1 || c.Unstable != 0 || c.Transactions != 10 {
		t.Errorf("as it was %v, ON %v (%d more, %d not sent), READ COMMITTED %v; %d transactions, %d unstable", was.Refused, on.Refused, on.MoreRefused, on.NotSent, weaker.Refused, c.Transactions, c.Unstable)
	}
	expectRefused(t, c, on.Shapes, map[string][2]int{"buy": {1, 1}, "rename": {0, 1}, "view": {0, 1}, "save": {1, 0}})
	if s := refusedOf(c, on.Shapes, "buy"); s != nil && !strings.Contains(s.Examples[0], "it would have overwritten stock, which session 1 had changed") {
		t.Errorf("buy: %q", s.Examples)
	}
	if comes, goes := anomaliesOf(on); len(comes) > 0 || !slices.Contains(goes, "lost update") {
		t.Errorf("comes %v, goes %v", comes, goes)
	}
	for _, part := range []string{"refused with 1020", "Needed: 2 of 5 must be refused or prevented.", "A: goes: LOST UPDATE", "Only the recorded order was tried"} {
		if !strings.Contains(text, part) {
			t.Errorf("not printed: %q\n%s", part, text)
		}
	}
	// The other way round: what comes back when it is switched off.
	c, _ = compared(t, exitFound, path, "--engine", url, "--snapshot", schema, "--session-sql", "SET SESSION innodb_snapshot_isolation = ON", "--what-if", "setting=innodb_snapshot_isolation=OFF")
	off := c.Runs[1]
	expectRefused(t, c, c.Runs[0].Shapes, map[string][2]int{"buy": {1, 1}, "rename": {0, 1}, "view": {0, 1}, "save": {1, 0}})
	if comes, _ := anomaliesOf(off); off.FewerRefused != 5 || len(off.Shapes) > 0 || !slices.Contains(comes, "lost update") {
		t.Errorf("switched off: %d fewer refused, %+v, comes %v", off.FewerRefused, off.Shapes, comes)
	}
}

// TestWhatIfInterleavings: a capture without concurrency, of which nothing is refused in its own order.
func TestWhatIfInterleavings(t *testing.T) {
	t.Parallel()
	lines := serially(
		transaction("buy", "SELECT id, stock FROM product WHERE id = 1", "UPDATE product SET stock = 4 WHERE id = 1"),
		transaction("rename", "SELECT title FROM product WHERE id = 1", "UPDATE product SET title = 'mug' WHERE id = 1"))
	path, url, schema := loggedTrace(t, lines...), serverURL(testserver.MariaDB(t)), file(t, productSchema)
	c, _ := compared(t, exitClean, path, "--engine", url, "--snapshot", schema, "--oracle", "none", "--interleavings", "all", "--what-if", "setting=innodb_snapshot_isolation=ON")
	on := c.Runs[1]
	if len(on.Refused) > 0 || len(on.Shapes) > 0 || len(c.Runs[0].Others) > 0 || on.Interleavings == 0 {
		t.Errorf("in its own order: %v %+v; %d interleavings, as it was %+v", on.Refused, on.Shapes, on.Interleavings, c.Runs[0].Others)
	}
	for _, name := range []string{"buy", "rename"} {
		if s := refusedOf(c, on.Others, name); s == nil || s.True+s.Unknown > 0 || s.RowLevel == 0 || s.Refused["1020"] != s.RowLevel {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestWhatIfPostgres: 40001 at two levels. SERIALIZABLE also refuses a write skew, for which there is no row.
func TestWhatIfPostgres(t *testing.T) {
	t.Parallel()
	off := func(name string) []string {
		return transaction("off-"+name, "SELECT count(*) FROM doctor WHERE on_call = 1", "UPDATE doctor SET on_call = 0 WHERE name = '"+name+"'")
	}
	path, url, schema := loggedPostgres(t, append(captured(), overlapping(off("ada"), off("bob"))...)...), serverURL(testserver.Postgres(t)), file(t, productSchema)
	c, text := compared(t, exitFound, path, "--engine", url, "--snapshot", schema, "--what-if", "level=repeatable-read", "--what-if", "level=serializable,setting=deadlock_timeout=20ms")
	rows := map[string][2]int{"buy": {1, 1}, "rename": {0, 1}, "view": {0, 1}, "save": {1, 0}}
	if n := len(c.Runs[0].Refused); n > 0 || c.Runs[1].Refused["40001"] != 5 || c.Runs[2].Refused["40001"] != 6 {
		t.Errorf("refused: %v, %v, %v", c.Runs[0].Refused, c.Runs[1].Refused, c.Runs[2].Refused)
	}
	expectRefused(t, c, c.Runs[1].Shapes, rows)
	rows["off-bob"] = [2]int{1, 0}
	if refusedOf(c, c.Runs[2].Shapes, "off-ada") != nil { // the server chooses which of the two
		delete(rows, "off-bob")
		rows["off-ada"] = [2]int{1, 0}
	}
	expectRefused(t, c, c.Runs[2].Shapes, rows)
	if _, goes := anomaliesOf(c.Runs[2]); !slices.Contains(goes, "lost update") || !slices.Contains(goes, "write skew") {
		t.Errorf("goes: %v", goes)
	}
	if _, goes := anomaliesOf(c.Runs[1]); slices.Contains(goes, "write skew") {
		t.Errorf("REPEATABLE READ: goes: %v", goes)
	}
	if !strings.Contains(text, "level=serializable,setting=deadlock_timeout=20ms") {
		t.Errorf("printed:\n%s", text)
	}
}

// TestWhatIfOwnLevel: a level that the application sets itself is the variant's, too.
func TestWhatIfOwnLevel(t *testing.T) {
	t.Parallel()
	skewed := func(begin string) []string {
		lines := captured()[:8]
		for i := range lines {
			lines[i] = strings.Replace(lines[i], "BEGIN", begin, 1)
		}
		return lines
	}
	schema := file(t, productSchema)
	for _, begin := range []string{"BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN"} {
		path, url := loggedPostgres(t, skewed(begin)...), serverURL(testserver.Postgres(t))
		c, _ := compared(t, exitFound, path, "--engine", url, "--snapshot", schema, "--what-if", "level=repeatable-read", "--what-if", "level=read committed")
		if c.Runs[1].Refused["40001"] != 1 || len(c.Runs[2].Refused) > 0 {
			t.Errorf("%s: %v, %v", begin, c.Runs[1].Refused, c.Runs[2].Refused)
		}
	}
}

// TestWhatIfSame: a variant that changes nothing changes nothing.
func TestWhatIfSame(t *testing.T) {
	t.Parallel()
	lines := serially(transaction("buy", "SELECT id, stock FROM product WHERE id = 1", "UPDATE product SET stock = stock - 1 WHERE id = 1", "SELECT now(), stock FROM product WHERE id = 1"))
	path, url, schema := loggedPostgres(t, lines...), serverURL(testserver.Postgres(t)), file(t, productSchema)
	c, text := compared(t, exitClean, path, "--engine", url, "--snapshot", schema, "--what-if", "level=read-committed")
	if a := c.Runs[1]; a.Otherwise+a.MoreRefused+a.MoreWaits+len(a.Anomalies)+len(a.Differences) > 0 || c.Statements == 0 {
		t.Errorf("%+v\n%s", a, text)
	}
}

// TestWhatIfRefused: what there is not is an error before anything runs.
func TestWhatIfRefused(t *testing.T) {
	t.Parallel()
	path, url, schema := loggedTrace(t, captured()[:8]...), serverURL(testserver.MariaDB(t)), file(t, productSchema)
	for text, want := range map[string]string{
		"level=strict":                      `unknown level "strict": use one of`,
		"level=":                            "expected level=LEVEL, setting=NAME=VALUE or engine=ENGINE",
		"speed=2":                           "speed stands there twice, or is not known",
		"level=serializable,level=snapshot": "level stands there twice",
		"setting=innodb_snapshot_isolation": "expected setting=NAME=VALUE",
		"setting=nothing_of_this=1":         "Unknown system variable 'nothing_of_this'",
		"setting=port=3":                    "read only variable",
		"setting=innodb_deadlock_detect=0":  "SET GLOBAL", // the tests' server is not private to this replay
		"engine=oracle":                     `unknown engine "oracle"`,
		"engine=mariadb:0.1":                "this machine has no server of mariadb:0.1",
		"engine=postgres":                   "cannot be replayed on PostgreSQL",
		"engine=sqlite":                     "cannot be replayed on SQLite",
	} {
		out, said, status := command(t, "replay", path, "--engine", url, "--snapshot", schema, "--what-if", text)
		if status != exitFailed || !strings.Contains(said, want) || out != "" {
			t.Errorf("%s: exit status %d, want %q in:\n%s%s", text, status, want, out, said)
		}
	}
}

// TestWhatIfPage: the page has what the text says.
func TestWhatIfPage(t *testing.T) {
	t.Parallel()
	path, url, schema := loggedTrace(t, captured()[:8]...), serverURL(testserver.MariaDB(t)), file(t, productSchema)
	out, said, status := command(t, "replay", path, "--engine", url, "--snapshot", schema, "--what-if", "setting=innodb_snapshot_isolation=ON", "--format", "html")
	if status != exitFound || !strings.Contains(out, "</html>") || !strings.Contains(out, "refused with 1020") || !strings.Contains(out, "statements that went otherwise") {
		t.Errorf("exit status %d\n%s", status, said)
	}
}

// TestWhatIfMySQL: the same on another product of the family.
func TestWhatIfMySQL(t *testing.T) {
	t.Parallel()
	if !slices.Contains(testserver.Engines(), "mysql") {
		t.Skip("mysql is not among WIRECHECK_TEST_ENGINES")
	}
	path, schema := loggedTrace(t, captured()...), file(t, productSchema)
	c, _ := compared(t, exitFound, path, "--engine", serverURL(testserver.MariaDB(t)), "--snapshot", schema, "--what-if", "engine=mysql", "--what-if", "engine=mysql,level=serializable")
	if a := c.Runs[1]; a.Engine != "mysql" || a.Failed != "" || a.MoreRefused+a.Otherwise > 0 {
		t.Errorf("%+v", a)
	}
	if a := c.Runs[2]; a.Refused["1213"] == 0 || a.Refused["1020"] > 0 {
		t.Errorf("%+v", a)
	}
}

// TestWhatIfRows: two statements with the same condition that fixes no key need not be about one row. The near misses name a key, of several columns and
// besides another condition.
func TestWhatIfRows(t *testing.T) {
	t.Parallel()
	const schema = "CREATE TABLE task (id INT PRIMARY KEY, state VARCHAR(10), worker INT, tries INT);\n" +
		"CREATE TABLE seat (hall INT, place INT, guest INT, price INT, PRIMARY KEY (hall, place));\n" +
		"INSERT INTO task VALUES (1, 'new', 0, 0), (2, 'new', 0, 0), (3, 'new', 0, 0);\nINSERT INTO seat VALUES (1, 1, 0, 5), (1, 2, 0, 5), (2, 1, 0, 5);\n"
	lines := slices.Concat(
		overlapping(transaction("take", "SELECT count(*) FROM task", "UPDATE task SET worker = 7 WHERE state = 'new' AND tries = 0"),
			transaction("take2", "SELECT count(*) FROM task", "UPDATE task SET worker = 8 WHERE state = 'new' AND tries = 0")),
		overlapping(transaction("sit", "SELECT guest FROM seat WHERE hall = 1 AND place = 1", "UPDATE seat SET guest = 7 WHERE hall = 1 AND place = 1"),
			transaction("sit2", "SELECT guest FROM seat WHERE hall = 1 AND place = 1", "UPDATE seat SET guest = 8 WHERE hall = 1 AND place = 1 AND price = 5")),
		overlapping(transaction("raise", "SELECT price FROM seat WHERE hall = 1 AND place = 2", "UPDATE seat SET price = 6 WHERE hall = 1 AND place = 2"),
			transaction("sit3", "SELECT hall FROM seat WHERE hall = 1 AND place = 2", "UPDATE seat SET guest = 8 WHERE place = 2 AND hall = 1")),
		overlapping(transaction("sweep", "SELECT count(*) FROM seat", "UPDATE seat SET price = 9 WHERE guest = 0"),
			transaction("note", "SELECT count(*) FROM seat", "UPDATE seat SET guest = 3 WHERE hall = 2 AND place = 1")),
		overlapping(transaction("all", "SELECT count(*) FROM seat", "UPDATE seat SET price = 4"),
			transaction("note2", "SELECT hall FROM seat", "UPDATE seat SET guest = 4 WHERE hall = 2 AND place = 1")))
	for engine, code := range map[string]string{"mariadb": "1020", "postgres": "40001"} {
		logged, server, variant := loggedTrace, testserver.MariaDB, "setting=innodb_snapshot_isolation=ON"
		if engine == "postgres" {
			logged, server, variant = loggedPostgres, testserver.Postgres, "level=repeatable-read"
		}
		c, text := compared(t, exitFound, logged(t, lines...), "--engine", serverURL(server(t)), "--snapshot", file(t, schema), "--oracle", "none", "--what-if", variant)
		on := c.Runs[1]
		for name, want := range map[string][3]int{"take": {0, 0, 1}, "sit2": {1, 0, 0}, "sit3": {0, 1, 0}, "note": {0, 0, 1}, "note2": {0, 1, 0}} {
			if s := refusedOf(c, on.Shapes, name); s == nil || s.True != want[0] || s.RowLevel != want[1] || s.Unknown != want[2] || s.Refused[code] != 1 {
				t.Errorf("%s: %s: %+v, want %v\n%s", engine, name, s, want, text)
			}
		}
	}
}
