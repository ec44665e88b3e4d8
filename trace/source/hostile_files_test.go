package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

// importAll writes files and imports them together.
func importAll(t *testing.T, o source.Options, files ...string) ([]*trace.Record, []*source.Report, error) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, text := range files {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("log%d", i)))
		if err := os.WriteFile(paths[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var records []*trace.Record
	o.Out = func(r *trace.Record) error {
		c := *r
		records = append(records, &c)
		return nil
	}
	reports, err := source.Import(t.Context(), formats(), paths, o)
	return records, reports, err
}

// TestFilesTogether has files that do not belong together, or not in that order: what can be wrong is said, and nothing if nothing is.
func TestFilesTogether(t *testing.T) {
	at := func(hour int, pid, session, sql string) string {
		s := strings.Replace(csvStatement("001", sql), "09:31:14", fmt.Sprintf("%02d:31:14", hour), 1)
		return strings.NewReplacer(",77,", ","+pid+",", "6b00.4d", session).Replace(s)
	}
	started := `2026-11-20 09:31:14.000 UTC,,,1,,6b00.1,1,,2026-11-20 09:31:13 UTC,,0,LOG,00000,"starting PostgreSQL 15.18 on x",,,,,,,,,"","postmaster",,0` + "\n"
	audit := func(server, time, id string) string {
		return "20261120 " + time + "," + server + ",app,localhost,7," + id + ",QUERY,shop,'SELECT " + id + "',0\n"
	}
	const clockBack, several, twice = "the clock goes back", "several servers", "in the trace twice"
	for _, tt := range []struct {
		name  string
		files []string
		want  string // a note
	}{
		{"in order", []string{at(9, "77", "a.4d", "SELECT 1"), at(10, "77", "a.4d", "SELECT 2")}, ""},
		{"out of order", []string{at(10, "77", "a.4d", "SELECT 1"), at(9, "77", "a.4d", "SELECT 2")}, clockBack},
		{"a little out of order, as any server writes", []string{at(9, "77", "a.4d", "SELECT 1") + strings.Replace(at(9, "78", "a.4e", "SELECT 2"), "14.001", "13.900", 1)}, ""},
		{"the same one twice", []string{at(9, "77", "a.4d", "SELECT 1") + at(10, "77", "a.4d", "SELECT 2"), at(9, "77", "a.4d", "SELECT 1") + at(10, "77", "a.4d", "SELECT 2")}, clockBack},
		{"a process id comes again", []string{at(9, "77", "a.4d", "SELECT 1"), at(10, "77", "b.4d", "SELECT 2"), at(11, "77", "c.4d", "SELECT 2")}, ""},
		{"two servers in one", []string{at(9, "77", "a.4d", "SELECT 1") + at(9, "77", "b.4d", "SELECT 2") + at(9, "77", "a.4d", "SELECT 1")}, several},
		{"a restart", []string{at(9, "77", "a.4d", "SELECT 1") + started + at(9, "77", "b.4d", "SELECT 2")}, ""},
		{"a restart that does not end sessions", []string{at(9, "77", "a.4d", "SELECT 1") + started + at(9, "77", "a.4d", "SELECT 2")}, several},
		{"an empty one among others", []string{at(9, "77", "a.4d", "SELECT 1"), ""}, "is empty"},
		{"two formats", []string{at(9, "77", "a.4d", "SELECT 1"), jsonStatement("SELECT 1")}, twice},
		{"audit of one server", []string{audit("a", "09:31:15", "1") + audit("a", "09:31:15", "2")}, ""},
		{"audit of two servers", []string{audit("a", "09:31:15", "1") + audit("b", "09:31:15", "2")}, several},
		{"audit, out of order", []string{audit("a", "09:31:15", "3"), audit("a", "08:31:15", "2")}, clockBack},
		{"general log, clock set back", []string{"261120  9:31:15\t     7 Query\tSELECT 1\n261120  8:31:15\t     7 Query\tSELECT 1\n"}, clockBack},
		{"slow log, clock set back", []string{slowStatement("SELECT 1") + strings.ReplaceAll(slowStatement("SELECT 1"), "T09", "T08")}, clockBack},
	} {
		_, reports, err := importAll(t, source.Options{}, tt.files...)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var text strings.Builder
		for _, r := range reports {
			text.WriteString(reportText(t, r))
		}
		for _, note := range []string{clockBack, several, twice, "is empty"} {
			if (note == tt.want) != strings.Contains(text.String(), note) {
				t.Errorf("%s: about %q:\n%s", tt.name, note, text.String())
			}
		}
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(started), 0o600); err != nil {
		t.Fatal(err)
	}
	link := path + "2"
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Import(t.Context(), formats(), []string{path, link}, source.Options{}); err == nil || !strings.Contains(err.Error(), "are the same file") {
		t.Errorf("the same file under two names: %v", err)
	}
	if _, err := source.Import(t.Context(), formats(), []string{filepath.Dir(path)}, source.Options{}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
}

// TestRefusals has the beginnings of files that people take for logs.
func TestRefusals(t *testing.T) {
	for head, want := range map[string]string{
		"\x89WCT\r\n\x1a\n" + "x":                "a trace file already",
		`{"wirecheck":"history","version":1}`:    "a history",
		"BZh91AY&SY":                             "bzip2",
		"\xfd7zXZ\x00\x00":                       "xz",
		"PK\x03\x04\x14":                         "zip",
		"PGDMP\x01\x0e":                          "pg_dump's custom format",
		"--\n-- PostgreSQL database dump\n--\n":  "a database dump",
		"-- MySQL dump 10.13  Distrib 8.4.3\n--": "a database dump",
		"/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19  Distrib 10.11.19\n": "a database dump",
		"\xfebin\x00\x00\x00": "a binary log",
		"/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;\nDELIMITER /*!*/;\n# at 4\n#261120  9:31:13 server id 1  end_log_pos 256 CRC32 0x249309d7 \tStart": "a binary log",
		"BEGIN 736\ntable public.t: INSERT: id[integer]:1\nCOMMIT 736\n":                                                                                  "logical decoding",
		"0/196C490|736|BEGIN 736\n0/196F048|736|COMMIT 736 (at 2026-11-20 09:31:13.913712+00)\n":                                                          "logical decoding",
		`{"change":[{"kind":"insert"}]}`:                                                                                      "wal2json",
		"THREAD_ID\tEVENT_ID\tEND_EVENT_ID\tEVENT_NAME\tTIMER_START\n":                                                        "performance_schema",
		"event_time\tuser_host\tthread_id\tserver_id\tcommand_type\n":                                                         "mysql.general_log",
		"start_time,user_host,query_time\n":                                                                                   "mysql.slow_log",
		"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<AUDIT>\n":                                                               "audit log",
		`{"audit_record":{"name":"Query"}}`:                                                                                   "audit log",
		"Nov 20 09:31:14 db1 postgres[77]: [5-1] LOG:  statement: SELECT":                                                     "syslog",
		"2026-11-20T09:31:14.123456Z 0 [System] [MY-010116] [Server] /usr/sbin/mysqld (mysqld 8.4.3) starting as process 1\n": "an error log",
		"[2026/11/20 09:31:14.123 +00:00] [INFO] [session.go:1] [GENERAL_LOG]":                                                "TiDB's server log",
		"09:31:14.123456 IP 10.0.0.1.5000 > 10.0.0.2.5432: Flags [P.]":                                                        "tcpdump's text",
		"\n# Profile\n# Rank Query ID           Response time\n":                                                              "pt-query-digest",
		"\x34\xcd\xb2\xa1\x02":                           "editcap",
		"<9:31 app@shop 77> LOG:  statement: SELECT 1\n": "log_line_prefix",
		strings.Repeat("\x00", 100):                      "zero bytes",
		"\x32\x92\xcf\x6f\x00\x0d\x07\xf0\x6b\x00\x12\xef\x00\x00\x06\x36\x00\x00\x00\x00\x01a\x00\x00\x00\x01b\n": "pgreplay",
		"hello\n":                      "none of the formats",
		"\xff\xfe2\x000\x002\x006\x00": "UTF-16",
	} {
		_, _, err := importAll(t, source.Options{}, head)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "log0: ") {
			t.Errorf("%.40q: %v, want %q", head, err, want)
		}
	}
}

// TestOtherLanguages has the lines of servers with other lc_messages (PostgreSQL 15's translations), and lines in English that look like them.
func TestOtherLanguages(t *testing.T) {
	for message, foreign := range map[string]bool{
		"Anweisung: SELECT 1": true, "instruction : INSERT INTO t VALUES (1)": true, "sentencia: begin": true, "文: SELECT 1": true, "명령 구문: UPDATE t SET a = 1": true,
		"оператор: COMMIT": true, "Dauer: 0.123 ms": true, "durée : 12.000 ms": true, "продолжительность: 0.100 мс": true, "期間: 0.123 ミリ秒": true,
		"varaktighet 0.123 ms": true, "Ausführen S_1: SELECT 1": true, "exécute <unnamed>: DELETE FROM t": true,
		"temporary file: path \"base/pgsql_tmp/pgsql_tmp1.0\", size 1000": false, "unexpected EOF on client connection with an open transaction": false,
		"could not receive data from client: Connection reset by peer": false, "received fast shutdown request": false,
	} {
		_, report := imported(t, []byte(strings.Replace(csvStatement("001", "x"), "statement: x", strings.ReplaceAll(message, `"`, `""`), 1)), "csvlog", source.Options{})
		if told := strings.Contains(reportText(t, report), "lc_messages = C"); told != foreign || (report.Unknown == 1) != foreign {
			t.Errorf("%s: %d unknown, told %v", message, report.Unknown, told)
		}
	}
	// The same in text form, where severities are translated too.
	log := "2026-11-20 09:31:14.001 UTC [77] app@shop LOG:  Anweisung: SELECT 1\n2026-11-20 09:31:14.002 UTC [77] app@shop FEHLER:  Relation »t« existiert nicht\n" +
		"2026-11-20 09:31:14.002 UTC [77] app@shop ANWEISUNG:  SELECT * FROM t\n2026-11-20 09:31:14.001 UTC [77] app@shop СООБЩЕНИЕ:  оператор: SELECT 1\n"
	sts, report := imported(t, []byte(log), "stderr", source.Options{Prefix: "%m [%p] %q%u@%d "})
	if len(sts) != 0 || report.Unknown != 4 {
		t.Errorf("%v, %s", texts(sts), reportText(t, report))
	}
}

// TestPrefixes reads PostgreSQL's text log with the prefixes that are in use, recognised or given.
func TestPrefixes(t *testing.T) {
	for _, tt := range []struct{ prefix, line, given string }{
		{"the default", "2026-11-20 09:31:14.001 UTC [77] ", ""},
		{"Debian", "2026-11-20 09:31:14.001 UTC [77] app@shop ", ""},
		{"RDS", "2026-11-20 09:31:14 UTC:10.0.0.5(4711):app@shop:[77]:", ""},
		{"pgbadger's", "2026-11-20 09:31:14 UTC [77]: [5-1] user=app,db=shop,app=a b,client=10.0.0.5 ", ""},
		{"pgreplay's", "2026-11-20 09:31:14.001 UTC|app|shop|6b00.4d|", ""},
		{"Cloud SQL's", "2026-11-20 09:31:14.001 UTC [77]: [5-1] db=shop,user=app ", ""},
		{"seconds since 1970", "1795167074.001 77 app shop ", "%n %p %u %d "},
		{"padded, with a percent sign", "100% 2026-11-20 09:31:14.001 -03     77 app  shop: ", "100%% %m %6p %-4u %d: "},
		{"in quotes of its own", "[2026-11-20 09:31:14.001 CET] <app> {shop} (77/4/2:0) idle ", "[%m] <%u> {%d} (%p/%v:%x) %i "},
	} {
		for what, want := range map[string]string{"LOG:  statement: SELECT 1\n\t+ 1\n": "SELECT 1\n+ 1", "LOG:  00000: statement: SELECT 2\n": "SELECT 2", "LOG:  duration: 0.100 ms  statement: SELECT 3\n": "SELECT 3"} {
			_, reports, err := importAll(t, source.Options{Format: map[bool]string{true: "stderr"}[tt.given != ""], Prefix: tt.given}, tt.line+what+"some library's warning\n")
			if err != nil {
				t.Errorf("%s: %v", tt.prefix, err)
				continue
			}
			sts, _ := imported(t, []byte(tt.line+what), "stderr", source.Options{Prefix: tt.given})
			if reports[0].Format != "stderr" || reports[0].Unknown != 1 || !cmp.Equal(texts(sts), []string{want}) {
				t.Errorf("%s: %v\n%s", tt.prefix, texts(sts), reportText(t, reports[0]))
			}
		}
	}
}

// TestSlowHeaders reads the headers of entries as different servers write them.
func TestSlowHeaders(t *testing.T) {
	for _, tt := range []struct {
		name, log, want string
	}{
		{"MySQL 5.6", "# Time: 261120  9:31:15\n# User@Host: app[app] @ web1 [10.0.0.5]  Id:     7\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 1  Rows_examined: 2\nuse shop;\nSET timestamp=1795167075;\nSELECT 1;\n",
			"s1 mysql app shop 7: SELECT 1 took 500ms"},
		{"MySQL 5.7, SYSTEM time", "# Time: 2026-11-20T10:31:15.500000+01:00\n# User@Host: app[app] @ localhost []  Id:     7\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 1  Rows_examined: 2\nSET timestamp=1795167075;\nSELECT 1;\n",
			"s1 mysql app  7: SELECT 1 took 500ms"},
		{"MySQL 9, log_slow_extra", "# Time: 2026-11-20T09:31:15.500000Z\n# User@Host: app[app] @ localhost []  Id:     7\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 0  Rows_examined: 2 Thread_id: 7 Errno: 1062 Killed: 0 Bytes_received: 0 Bytes_sent: 9 Read_first: 0 Start: 2026-11-20T09:31:15.000000Z End: 2026-11-20T09:31:15.500000Z Schema: shop Rows_affected: 0\nSET timestamp=1795167075;\nINSERT INTO t VALUES (1);\n",
			"s1 mysql app shop 7: INSERT INTO t VALUES (1) took 500ms error 1062"},
		{"MariaDB, no host", "# Time: 261120  9:31:15\n# User@Host: app[app] @  [10.0.0.5]\n# Thread_id: 7  Schema: shop  QC_hit: No\n# Query_time: 0.500000  Lock_time: 0.1  Rows_sent: 1  Rows_examined: 2\n# Rows_affected: 0  Bytes_sent: 95\n# Full_scan: Yes  Full_join: No\n#\n# explain: id\tselect_type\ttable\n# explain: 1\tSIMPLE\tt\n#\nSET timestamp=1795167075;\nSELECT 1;\n",
			"s1 mysql app shop 7: SELECT 1 took 500ms"},
		{"Percona", "# Time: 2026-11-20T09:31:15.5Z\n# User@Host: app[app] @ localhost []  Id:     7\n# Schema: shop  Last_errno: 1213  Killed: 0\n# Query_time: 0.500000  Lock_time: 0.1  Rows_sent: 1  Rows_examined: 0  Rows_affected: 0  Bytes_sent: 56\n# Tmp_tables: 0  Tmp_disk_tables: 0\n# QC_Hit: No  Full_scan: Yes\n# InnoDB_trx_id: 1F\n#   InnoDB_IO_r_ops: 0\n# Log_slow_rate_type: query  Log_slow_rate_limit: 10\nSET timestamp=1795167075;\nSELECT 1;\n",
			"s1 mysql app shop 7: SELECT 1 took 500ms error 1213 xid 31 rated"},
		{"SET timestamp with an id", "# Time: 261120  9:31:15\n# User@Host: app[app] @ localhost []  Id:     7\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 1  Rows_examined: 2\nSET last_insert_id=5,insert_id=6,timestamp=1795167075;\nSET timestamp = 1;\n",
			"s1 mysql app  7: SET timestamp = 1 took 500ms"},
		{"the client's own USE", "# Time: 261120  9:31:15\n# User@Host: app[app] @ localhost []  Id:     7\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 1  Rows_examined: 2\nSET timestamp=1795167075;\nuse shop;\n",
			"s1 mysql app  7: use shop took 500ms"},
		{"administrator command", "# Time: 261120  9:31:15\n# User@Host: app[app] @ localhost []  Id:     7\n# Query_time: 0.5  Lock_time: 0.1 Rows_sent: 1  Rows_examined: 2\nSET timestamp=1795167075;\n# administrator command: Ping;\n", ""},
		{"TiDB", "# Time: 2026-11-20T09:31:15.500000000Z\n# Txn_start_ts: 410450924122144769\n# User@Host: app[app] @ 10.0.0.5 [10.0.0.5]\n# Conn_ID: 7\n# Query_time: 0.5\n# Parse_time: 0.000054933\n# DB: shop\n# Is_internal: false\n# Succ: false\n# Plan: tidb_decode_plan('x')\nuse shop;\nSELECT 1;\n",
			"s1 tidb app shop 7: SELECT 1 took 500ms error "},
		{"TiDB, of its own", "# Time: 2026-11-20T09:31:15.500000000Z\n# Txn_start_ts: 410450924122144769\n# Query_time: 0.5\n# Is_internal: true\n# Succ: true\nSELECT 1;\n# Time: 2026-11-20T09:31:16.500000000Z\n# Txn_start_ts: 1\n# User@Host: app[app] @ 10.0.0.5 [10.0.0.5]\n# Conn_ID: 8\n# Query_time: 0.5\nSELECT 2;\n",
			"s1 tidb app  8: SELECT 2 took 500ms"},
	} {
		records, report := importBytes(t, []byte(tt.log), source.Options{Format: "slow"})
		var got strings.Builder
		var open *trace.Session
		for _, r := range records {
			if r.Kind == trace.KindSession {
				open = r.Open
			}
			if st := r.Statement; st != nil {
				product := open.Product
				if product == "" {
					product = "mysql"
				}
				fmt.Fprintf(&got, "s%d %s %s %s %s: %s took %v", r.Session, product, open.User, open.Database, open.Backend, st.SQL, time.Duration(st.Took))
				if st.Error != nil {
					fmt.Fprintf(&got, " error %s", st.Error.Code)
				}
				if st.XID != 0 {
					fmt.Fprintf(&got, " xid %d", st.XID)
				}
			}
		}
		if strings.Contains(reportText(t, report), "log_slow_rate_limit = 1") {
			got.WriteString(" rated")
		}
		if got.String() != tt.want || report.Unknown != 0 {
			t.Errorf("%s: got\n%s\nwant\n%s\n%s", tt.name, got.String(), tt.want, reportText(t, report))
		}
	}
}

// TestAuditLines has lines of server_audit of which some are cut, masked or of another version.
func TestAuditLines(t *testing.T) {
	line := func(object, rest string) string {
		return "20261120 09:31:15,vm,app,localhost,7,1,QUERY,shop,'" + object + "'," + rest + "\n"
	}
	long := strings.Repeat("x", 1024-len(`SELECT \'`))
	for _, tt := range []struct {
		name, log, want string
		lost            bool
	}{
		{"quotes and backslashes", line(`SELECT \'it\'\'s\', \'a\\nb\', \'c\nd\te\rf\bg\fh\'`, "0"), "SELECT 'it''s', 'a\\nb', 'c\nd\te\rf\bg\fh'", false},
		{"a comma and a quote", line(`SELECT \',\', \'\',0`, "1064"), "SELECT ',', '',0", false},
		{"cut in a string", line(`SELECT \'`+long, "0"), "SELECT '" + long, true},
		{"cut at another limit", line(`SELECT \'xxxx`, "0"), "SELECT 'xxxx", true},
		{"refused, with an open quote", line(`SELECT \'xxxx`, "1064"), "SELECT 'xxxx", false},
		{"a password", line("CREATE USER a IDENTIFIED BY *****", "0"), "CREATE USER a IDENTIFIED BY *****", true},
		{"a later version's columns", line("SELECT 1", "0,TLSv1.3,,"), "SELECT 1", false},
		{"no closing quote", "20261120 09:31:15,vm,app,localhost,7,1,QUERY,shop,'SELECT 1,0\n", "", false},
		{"no code", line("SELECT 1", ""), "", false},
		{"no number", strings.Replace(line("SELECT 1", "0"), ",7,1,", ",7,x,", 1), "", false},
		{"unknown operation", strings.Replace(line("SELECT 1", "0"), "QUERY", "HELLO", 1), "", false},
		{"the last line is cut off in its code", strings.TrimSuffix(line("SELECT 1", "12"), "\n"), "", false},
		{"the last line has no end", strings.TrimSuffix(line("SELECT 1", "0"), "\n"), "SELECT 1", false},
	} {
		sts, report := imported(t, []byte(tt.log), "audit", source.Options{})
		if tt.want == "" {
			if len(sts) != 0 || report.Unknown != 1 {
				t.Errorf("%s: %q, %d unknown", tt.name, texts(sts), report.Unknown)
			}
			continue
		}
		if len(sts) != 1 || sts[0].SQL != tt.want || sts[0].Lost != tt.lost || report.Unknown != 0 {
			t.Errorf("%s: %q, %d unknown", tt.name, texts(sts), report.Unknown)
		}
	}
}
