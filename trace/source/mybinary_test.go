package source_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/mysql"
	"wirecheck/trace"
	"wirecheck/trace/source"
)

// TestMariaDBBinary asks for values in both protocols: what is told of the binary ones is what the server prints. And it sends what is rare:
// several statements at once, procedures, files, values in pieces, texts of more than one packet.
func TestMariaDBBinary(t *testing.T) {
	start := mariadb.Start
	if os.Getenv("WIRECHECK_TEST_FAMILY") == "mysql" {
		start = mysql.Start
	}
	server, err := start(t.Context(), engine.Options{Settings: map[string]string{"local_infile": "ON", "max_allowed_packet": "64M"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	passed := newTap(t, server.Address())
	o := driver.NewConfig()
	o.User, o.Passwd, o.Net, o.Addr = server.User, server.Password, "tcp", fmt.Sprintf("127.0.0.1:%d", passed.port())
	o.ConnectionAttributes, o.MultiStatements, o.MaxAllowedPacket = "program_name:shop-A", true, 64<<20
	connector, err := driver.NewConnector(o)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	run := func(query string, args ...any) {
		t.Helper()
		rows, err := db.QueryContext(t.Context(), query, args...)
		if err != nil {
			t.Fatalf("%s: %v", query[:min(len(query), 100)], err)
		}
		for more := true; more; more = rows.NextResultSet() {
			for rows.Next() {
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	run("CREATE DATABASE shop")
	run("USE shop")
	run(`CREATE TABLE v (a tinyint, b tinyint unsigned, c smallint, d mediumint, e int unsigned, f bigint, g bigint unsigned, h float, i double, j decimal(30,10), k date, l datetime,
		m datetime(6), n time, o time(2), p year, q char(5), r varchar(20), s text, u blob, w bit(10), x enum('a','b'), y set('a','b'), z timestamp(3) NULL, j2 json)`)
	run(`INSERT INTO v VALUES (-128, 255, -32768, -8388608, 4294967295, -9223372036854775808, 18446744073709551615, 1.5, -0.1, -1234567890.0987654321, '2026-11-20', '2026-11-20 01:02:03',
		'2026-11-20 01:02:03.000004', '-838:59:59', '25:00:00.5', 1999, 'x', 'it''s', 'text', x'00ff27', b'1000000001', 'b', 'a,b', '2026-11-20 01:02:03.5', '{"a": 1}'),
		(0, 0, 0, 0, 0, 0, 0, 0, 1e20, 0, '2026-01-01', '2026-01-01 00:00:00', '2026-01-01 00:00:00', '00:00:00', '00:00:00', 2000, '', '', '', '', b'0', 'a', '', NULL, NULL)`)
	run("SELECT * FROM v ORDER BY a")
	run("SELECT * FROM v WHERE 1 = ? ORDER BY a", 1)
	run("SELECT 1 AS one; UPDATE v SET a = 1 WHERE a = 0; SELECT 2, 3")
	run("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2 FROM v; END")
	run("CALL p()")
	file := t.TempDir() + "/data"
	if err := os.WriteFile(file, []byte(strings.Repeat("7\n", 50_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	driver.RegisterLocalFile(file)
	run("LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE v (a)")
	long := strings.Repeat("z", 9<<20)
	run("SELECT length(?)", long) // the driver sends it in pieces
	run("SELECT length('" + strings.Repeat("y", 17<<20) + "')")
	run("SELECT repeat('x', 20 << 20)")
	run("SELECT 'end'")
	db.Close()

	records, report := importBytes(t, pcapFile(t, packetsOf(t, passed.close(), server.Port), false), source.Options{})
	if report.Unknown != 0 || report.Lost != 1 {
		t.Error(reportText(t, report))
	}
	sts := statements(records, "shop-A")
	find := func(prefix string) *trace.Statement {
		for _, st := range sts {
			if strings.HasPrefix(st.SQL, prefix) {
				return st
			}
		}
		t.Fatalf("no %s among %d statements", prefix, len(sts))
		return nil
	}
	text, binary := find("SELECT * FROM v ORDER").Results[0], find("SELECT * FROM v WHERE").Results[0]
	for i, row := range text.Rows {
		for k, v := range row {
			if d := cmp.Diff(v, binary.Rows[i][k]); d != "" {
				t.Errorf("column %s: -text +binary:\n%s", text.Columns[k].Name, d)
			}
		}
	}
	if text.Digest != binary.Digest || len(text.Rows) != 2 {
		t.Errorf("digests of the same rows: %s and %s", text.Digest, binary.Digest)
	}
	brief := func(st *trace.Statement) string {
		var out []string
		for _, r := range st.Results {
			out = append(out, fmt.Sprint(r.Count, " ", r.Affected))
		}
		return strings.Join(out, "; ")
	}
	for prefix, want := range map[string]string{
		"SELECT 1 AS one": "1 -1; -1 1; 1 -1", "CALL p": "1 -1; 2 -1; -1 0", "LOAD DATA": "-1 50000", "SELECT 'end'": "1 -1", "SELECT repeat": "1 -1", "SELECT length('": "1 -1",
	} {
		if got := brief(find(prefix)); got != want {
			t.Errorf("%s: rows and affected %s, want %s", prefix, got, want)
		}
	}
	if st := find("SELECT length(?)"); len(st.Params) != 1 || st.Params[0].Value != long || st.Results[0].Rows[0][0].Text != fmt.Sprint(9<<20) {
		t.Errorf("the long value is not whole: %d parameters", len(st.Params))
	}
	if st := find("SELECT length('"); !st.Lost || len(st.SQL) != trace.MaxText {
		t.Errorf("the text is %d long, lost: %v", len(st.SQL), st.Lost)
	}
	if r := find("SELECT repeat").Results[0]; !r.Partial || r.Digest != "" || len(r.Rows) != 0 {
		t.Errorf("a row that is too large: %d rows, digest %q", len(r.Rows), r.Digest)
	}
}
