package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/postgres"
	"wirecheck/trace"
	"wirecheck/trace/source"
)

// TestAdvicePostgres executes the same statements under different settings, and demands that the report says what each makes the log leave out, and
// that the settings it advises make the log tell it.
func TestAdvicePostgres(t *testing.T) {
	const prefix = "%m|%u|%d|%c|%p|%l|%v|%x|%a|%e|"
	server, err := postgres.Start(t.Context(), engine.Options{Settings: map[string]string{
		"logging_collector": "on", "log_destination": "stderr,csvlog,jsonlog", "log_filename": "server.log", "log_line_prefix": prefix, "log_disconnections": "on",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	const (
		ends      = "when statements ended: log_duration = on"
		order     = "in which order statements began, to less than a millisecond: log_statement = all and log_duration = on"
		text      = "the text of statements that failed: log_min_error_statement = error"
		params    = "parameters of some statements: log_parameter_max_length = -1"
		verbosity = "log_error_verbosity = default"
		nothing   = "no statement was logged: log_statement = all, log_duration = on"
		language  = "lc_messages = C"
	)
	notes := []string{ends, order, text, params, verbosity, nothing, language}
	full := []string{"log_statement = 'all'", "log_duration = on"}
	cases := []struct {
		name     string
		settings []string
		want     []string // in all formats
		stderr   []string // besides, in text form
	}{
		{"as advised", full, nil, nil},
		{"no durations", []string{"log_statement = 'all'"}, []string{ends}, nil},
		{"durations only", []string{"log_min_duration_statement = 0"}, []string{order}, nil},
		{"durations without texts", []string{"log_duration = on", "log_min_error_statement = 'panic'"}, []string{nothing, text}, nil},
		{"errors without texts", []string{"log_min_duration_statement = 0", "log_min_error_statement = 'log'"}, []string{order, text}, nil},
		{"errors with texts", []string{"log_min_duration_statement = 0", "log_min_error_statement = 'error'"}, []string{order}, nil},
		{"no parameters", append(full, "log_parameter_max_length = 0"), []string{params}, []string{verbosity}},
		{"parameters", append(full, "log_parameter_max_length = -1"), nil, nil},
		{"terse", append(full, "log_error_verbosity = 'terse'"), nil, []string{params, verbosity}},
		{"verbose", append(full, "log_error_verbosity = 'verbose'"), nil, nil},
		{"German", append(full, "lc_messages = 'de_DE.UTF-8'"), []string{language, nothing}, nil},
	}
	ended := 0
	for i, tt := range cases {
		c := connectPg(t, server.Port, fmt.Sprintf("advice-%02d", i), server.Password)
		c.simple("SET " + strings.Join(tt.settings, "; SET "))
		if c.said[0].Error != "" {
			if tt.name == "German" {
				t.Logf("the server has no German locale: %s", c.said[0].Error)
				cases[i].name = ""
				continue
			}
			t.Fatalf("%s: %s", tt.name, c.said[0].Error)
		}
		c.params("SELECT 'p' || $1", "a value")
		c.simple("SELEKT 1")
		if err := c.conn.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		ended++
	}
	logs := filepath.Join(server.Folder(), "data", "log", "server")
	for _, ending := range []string{".csv", ".json", ".log"} {
		awaitLogged(t, logs+ending, "advice-", ended)
	}
	for _, ending := range []string{".csv", ".json", ".log"} {
		data, err := os.ReadFile(logs + ending)
		if err != nil {
			t.Fatal(err)
		}
		for i, tt := range cases {
			if tt.name == "" {
				continue
			}
			log := linesOf(string(data), fmt.Sprintf("advice-%02d", i))
			want, o := tt.want, source.Options{Format: map[string]string{".csv": "csvlog", ".json": "jsonlog", ".log": "stderr"}[ending]}
			if ending == ".log" {
				want, o.Prefix = append(want, tt.stderr...), prefix
			}
			_, report := importBytes(t, []byte(log), o)
			told := reportText(t, report)
			for _, note := range notes {
				wanted := false
				for _, w := range want {
					wanted = wanted || w == note
				}
				if wanted != strings.Contains(told, note) {
					t.Errorf("%s, %s: about %q:\n%s\nof\n%s", tt.name, ending, note, told, log)
				}
			}
		}
	}
}

// TestAuditTexts sends MariaDB texts of all characters and of lengths around server_audit's limit. What is told is what was sent, or it is said
// that it may not be whole; and that is not said of shorter ones.
func TestAuditTexts(t *testing.T) {
	server, err := mariadb.Start(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	path := server.Folder() + "/data/audit.log"
	admin := connectMy(t, server, server.Port, "admin")
	var sent []string
	do := func(sql string) {
		if _, err := admin.conn.ExecContext(t.Context(), sql); err != nil {
			t.Fatalf("%.60q: %v", sql, err)
		}
		sent = append(sent, sql)
	}
	for _, sql := range []string{"INSTALL SONAME 'server_audit'", "SET GLOBAL server_audit_events = 'CONNECT,QUERY'", "SET GLOBAL server_audit_file_path = '" + path + "'"} {
		do(sql)
	}
	sent = nil
	do("SET GLOBAL server_audit_logging = ON")
	var all strings.Builder
	for c := 1; c < 256; c++ {
		if c != '\'' && c != '\\' {
			all.WriteByte(byte(c))
		}
	}
	do("SELECT '" + all.String() + "'")
	do(`SELECT 'it''s \' \\ x'`)
	for n := 1000; n < 1030; n++ {
		do("SELECT " + strings.Repeat(" ", n-8) + "1")
		do("SELECT 'a\n" + strings.Repeat("x", n-11) + "'")
	}
	do("SET GLOBAL server_audit_query_log_limit = 100")
	do("SELECT '" + strings.Repeat("x", 150) + "'")
	do("SELECT 'the last one'")
	do("SET GLOBAL server_audit_logging = OFF") // closes the file
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sent = sent[:len(sent)-1] // whether the last one is told is not the question
	told, report := imported(t, data, "audit", source.Options{})
	// The last question of the server's start: the server tells of it after it has answered, which may be after the log was switched on.
	told = slices.DeleteFunc(told, func(st *trace.Statement) bool { return strings.HasPrefix(st.SQL, "SELECT VERSION(), @@") })
	if len(told) < len(sent) || report.Unknown != 0 {
		t.Fatalf("%d statements sent, %d told\n%s", len(sent), len(told), reportText(t, report))
	}
	lost := 0
	for i, sql := range sent {
		st := told[i]
		switch {
		case st.SQL != sql && !st.Lost:
			t.Errorf("sent\n%q\ntold\n%q", sql, st.SQL)
		case st.Lost:
			lost++
			if len(sql) < 1019 && len(sql) != 150+9 {
				t.Errorf("%d bytes are said to be cut: %q", len(sql), sql)
			}
		}
	}
	if lost < 10 {
		t.Errorf("only %d texts are said to be cut", lost)
	}
}

// linesOf gives the lines of a log that have a word, with the lines by which they go on.
func linesOf(log, word string) string {
	var b strings.Builder
	on := false
	for line := range strings.Lines(log) {
		if line[0] != '\t' {
			on = strings.Contains(line, word)
		}
		if on {
			b.WriteString(line)
		}
	}
	return b.String()
}
