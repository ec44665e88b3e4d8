package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// The names of rows with all kinds of keys, as a read, a group, a matching and a changing UPDATE and a DELETE tell them.
func TestNames(t *testing.T) {
	p := newPair(t, 0)
	p.wired.exec(t, "SET sql_mode='NO_ENGINE_SUBSTITUTION'")
	for _, test := range []struct {
		columns, key string // of the table
		values       string
		want         string
	}{
		{"a INT", "a", "1", "a=1"},
		{"a BIGINT UNSIGNED ZEROFILL", "a", "7", "a=00000000000000000007"},
		{"a INT, b VARCHAR(50)", "a,b", "1,'x'", "a=1, b='x'"},
		{"b VARCHAR(50), a INT", "a,b", "'x',1", "a=1, b='x'"},
		{"a VARCHAR(50)", "a", "''", "a=''"},
		{"a VARCHAR(50)", "a", "'it''s ,;= '", "a='it''s ,;= '"},
		{"a VARCHAR(50)", "a", "'x41,b=x'", "a='x41,b=x'"},
		{"a VARCHAR(50)", "a", "'12345678901234567890'", "a='12345678901234567890'"},
		{"a VARCHAR(50)", "a", "'123456789012345678901'", "a='12345678901234567890'..."},
		{"a VARCHAR(50) CHARACTER SET utf8mb4", "a", "'ééééééééééééééééééééé'", "a='éééééééééééééééééééé'..."},
		{"a VARCHAR(50) CHARACTER SET latin1", "a", "'é'", "a=0xe9"},
		{"a VARCHAR(50) CHARACTER SET ucs2", "a", "'ab'", "a=0x00610062"},
		{"a CHAR(5), b CHAR(5), c CHAR(7)", "a,b,c", "'a','b','1234567'", "a='a', b='b', c='123456'..."},
		{"a BINARY(4)", "a", "x'00ff3b2c'", "a=0x00ff3b2c"},
		{"a BINARY(16)", "a", "x'000102030405060708090a0b0c0d0e0f'", "a=0x000102030405060708090a0b0c0d0e0f"},
		{"a VARBINARY(64)", "a", "REPEAT(x'ff',64)", "a=0x" + strings.Repeat("ff", 20) + "..."},
		{"a VARBINARY(10)", "a", "'text'", "a='text'"},
		{"a VARBINARY(10)", "a", "x'6100'", "a=0x6100"},
		{"a BLOB", "a(10)", "'x;y'", "a='x;y'"},
		{"a DATETIME(3)", "a", "'2001-02-03 04:05:06.789'", "a=2001-02-03 04:05:06.789"},
		{"a DATE, b TIME", "a,b", "'2001-02-03','-04:05:06'", "a=2001-02-03, b=-04:05:06"},
		{"a DECIMAL(10,2), b DOUBLE", "a,b", "1.5,1e100", "a=1.50, b=1e100"},
		{"a ENUM('x','y z')", "a", "'y z'", "a='y z'"},
		{"a SET('x','y')", "a", "'x,y'", "a='x,y'"},
		{"a BIT(20)", "a", "b'1001'", "a=9"},
		{"a UUID", "a", "'123e4567-e89b-12d3-a456-426655440000'", "a=123e4567-e89b-12d3-a456-426655440000"},
		{"a INET6", "a", "'::1'", "a=::1"},
		{"`a b` INT", "`a b`", "1", "a b=1"},
		{"`ü,=;'` INT", "`ü,=;'`", "1", "ü,=;'=1"},
		{"a INT, b INT, c INT, d INT, e INT", "a,b,c,d,e", "1,2,3,4,5", "a=1, b=2, c=3, d=4"},
		{"a VARCHAR(100)", "a", "REPEAT('🎉',30)", "a='" + strings.Repeat("🎉", 13) + "..."},
	} {
		if flavor() == MySQL && (strings.HasPrefix(test.columns, "a UUID") || strings.HasPrefix(test.columns, "a INET6")) {
			continue // it has no such types
		}
		p.wired.exec(t, "CREATE TABLE named ("+test.columns+", v INT DEFAULT 0, PRIMARY KEY ("+test.key+"))")
		p.load(t)
		for _, sql := range AddColumns(flavor(), p.relation("named")) {
			p.wired.exec(t, sql)
		}
		p.load(t)
		p.wired.exec(t, p.rewriter.Script("INSERT INTO named VALUES ("+test.values+",0)", p.catalog, p.session).SQL)
		ops := map[string]history.Op{
			"SELECT * FROM named": history.OpRead, "SELECT v FROM named WHERE v = 0 FOR UPDATE": history.OpLock, "SELECT SUM(v) FROM named": history.OpRead,
			"SELECT v, COUNT(*) FROM named GROUP BY v": history.OpRead,
			"UPDATE named SET v = 1":                   history.OpUpdate, "UPDATE named SET v = 0": history.OpMatch, "DELETE FROM named": history.OpDelete,
		}
		for sql, op := range ops {
			p.wired.exec(t, "BEGIN")
			p.wired.exec(t, SetToken("T1.1.x"))
			script := p.rewriter.Script(sql, p.catalog, p.session)
			if (&form{coverage: exact}).expected(script.Plans[0]) != exact {
				p.wired.exec(t, "ROLLBACK")
				continue
			}
			r := p.wired.conn.send(t, script)
			if r.err != "" {
				t.Fatalf("%s: %s", script.SQL, r.err)
			}
			log, _, err := DecodeLog([]byte(p.wired.fetchLog(t)))
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			got := slices.DeleteFunc(log["T1.1.x"], func(a history.Access) bool {
				if a.Op == history.OpInsert && a.Name != test.want && a.Name != "" {
					t.Errorf("%s, key %s, values %s: %+v is inserted; want %s", test.columns, test.key, test.values, a, test.want)
				}
				return a.Op == history.OpInsert
			})
			for _, row := range r.rows {
				a, err := script.Plans[0].Decode(nil, row[len(row)-script.Plans[0].Hidden:])
				if err != nil {
					t.Errorf("%s: %v", sql, err)
				}
				got = append(got, a...)
			}
			if len(got) != 1 || got[0].Name != test.want || got[0].Op != op || r.warnings != 0 {
				t.Errorf("%s, key %s, values %s: %d warnings, %+v; want %s", test.columns, test.key, test.values, r.warnings, got, test.want)
			}
			p.wired.exec(t, "ROLLBACK")
		}
		p.wired.exec(t, "DROP TABLE named")
	}
}

func TestReadNameRefuses(t *testing.T) {
	for _, bad := range []struct {
		text    string
		columns []string
	}{
		{"1", nil}, {"a=1,2", nil}, {"a%2=1", nil}, {"a=xyz", nil}, {"1,2", []string{"a"}}, {"x4", []string{"a"}}, {"1", []string{"a", "b"}},
	} {
		if got, err := readName(bad.text, bad.columns); err == nil {
			t.Errorf("%q gives %q", bad.text, got)
		}
	}
}

// What a name costs in the hidden column and in the log.
func TestNamesAreShort(t *testing.T) {
	cat := testCatalog(t)
	src := &source{rel: cat.View(false).Relation("shop", "account"), ref: "`account`"}
	if got, want := nameOf(src, false), ",' ',`account`.`id`"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := nameOf(src, true), ",' id=',`account`.`id`"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := nameOf(&source{rel: cat.View(false).Relation("shop", "item"), ref: "`item`"}, true); got != "" {
		t.Errorf("without a key: %s", got)
	}
}

// TestSoleNames: the short way to a name gives what the long one gives.
func TestSoleNames(t *testing.T) {
	long := strings.Repeat("9", nameLimit)
	short := 0
	for _, text := range []string{"", "5", "-5", "x", "x41", "5,6", "2020-01-01 10:00:00", "a=5", "a=", "=5", "a=x41", "a=x4", "a%20b=5", "a=5,b=6", "a=b=c", long, "a=" + long, "a=" + long[:nameLimit-2], "é"} {
		for _, columns := range [][]string{nil, {}, {"a"}, {"id"}, {"a", "b"}, {long}} {
			got, ok := soleName(text, columns)
			if !ok {
				continue
			}
			short++
			if want, err := fullName(text, columns); err != nil || got != want {
				t.Errorf("%q %q: %q, want %q, %v", text, columns, got, want, err)
			}
		}
	}
	if short < 10 {
		t.Errorf("only %d names took the short way", short)
	}
}

// TestWritersName: a version's name is the same whether it stands in the column or is put together.
func TestWritersName(t *testing.T) {
	for value, want := range map[string]string{
		"0:": "0:", "1:T1.1.x": "1:T1.1.x", "12:T1.1.x,T2.1.x": "12:T2.1.x", "007:T1.1.x": "7:T1.1.x", "00:": "0:", "3:,T1.1.x": "3:T1.1.x",
	} {
		if w, err := parseWriters([]byte(value)); err != nil || w.version() != want {
			t.Errorf("%q: %q, %v, want %q", value, w.version(), err, want)
		}
	}
}

// TestLogEntriesSideBySide: what an entry takes over from the one before it is really the same.
func TestLogEntriesSideBySide(t *testing.T) {
	log := "r d.a%2520 1 1:T1.1.x T9.1.x id=1;r d.a%20 2 007:T1.1.x,T2.3.x T9.1.x id=2;r d.b 3 0: T9.1.x;u d.b 3 5:T2.3.x T9.2.x id=a=b;m d.b 4 1:T1.1.x T9.1.x;"
	got, truncated, err := DecodeLog([]byte(log))
	if err != nil || truncated {
		t.Fatal(truncated, err)
	}
	row := func(table, key string) history.Row { return history.Row{Table: table, Key: key} }
	want := map[string][]history.Access{
		"T9.1.x": {
			{Op: history.OpRead, Row: row("d.a%20", "1"), Name: "id=1", Version: "1:T1.1.x", Writer: "T1.x", Order: 2},
			{Op: history.OpRead, Row: row("d.a ", "2"), Name: "id=2", Version: "7:T2.3.x", Writer: "T2.x", Order: 8},
			{Op: history.OpRead, Row: row("d.b", "3"), Version: "0:", Order: history.OrderInitial},
			{Op: history.OpMatch, Row: row("d.b", "4"), Version: "1:T1.1.x", Writer: "T1.x", Order: 2},
		},
		"T9.2.x": {{Op: history.OpUpdate, Row: row("d.b", "3"), Name: "id=a=b", Prev: "5:T2.3.x", PrevWriter: "T2.x", PrevOrder: 6, Version: "6:T9.2.x", Order: 7}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, bad := range []string{"r d.a 1 1:T1.1.x T9.1.x", "r d.a 1 x:T1.1.x T9.1.x;", "x d.a 1 1:T1.1.x T9.1.x;", "r d.a 1 1:;", "r d.a%2 1 1: T9.1.x;", "rl d.a 1 1: T9.1.x;"} {
		if _, _, err := DecodeLog([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
