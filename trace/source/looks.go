package source

import (
	"bytes"
	"encoding/binary"
	"regexp"

	"wirecheck/trace"
)

// refusal says what a file is that is of none of the formats, and what to do.
func refusal(head []byte, formats []Format) string {
	for _, k := range knownKinds {
		if k.prefix != "" && bytes.HasPrefix(head, []byte(k.prefix)) || k.look != nil && k.look(head) {
			return "this is " + k.what + ": " + k.remedy
		}
	}
	return "none of the formats that wirecheck knows by their looks (" + formatNames(formats) + "): name it with --format"
}

// kind is a kind of file that people have at hand and that no trace can be made of.
type kind struct {
	prefix       string
	look         func(head []byte) bool
	what, remedy string
}

const (
	statementLogs = "the general log, the slow log (long_query_time = 0) or server_audit tells the statements"
	noReads       = ", which has changes only, neither reads nor waits"
	oldPcap       = "a packet capture in an old variant of pcap"
	decompressIt  = "decompress it first (gzip and zstd are read as they are)"
)

func like(pattern string) func([]byte) bool { return regexp.MustCompile(pattern).Match }

// isPgreplay knows a replay file of pgreplay by its first item, which is a connection: seconds, microseconds, session id (8 bytes), type 0, and
// two texts behind their lengths (pgreplay, replay_item.c).
func isPgreplay(head []byte) bool {
	if len(head) < 25 || binary.BigEndian.Uint32(head[4:]) >= 1e6 || head[16] != 0 {
		return false
	}
	rest := head[17:]
	for range 2 {
		if len(rest) < 4 || binary.BigEndian.Uint32(rest) > 1000 || uint32(len(rest)-4) <= binary.BigEndian.Uint32(rest) {
			return false
		}
		rest = rest[4+binary.BigEndian.Uint32(rest):]
	}
	return rest[0] == '\n'
}

// knownKinds are looked through in order.
var knownKinds = []kind{
	{look: trace.IsFile, what: "a trace file already", remedy: `look at it with "wirecheck trace show", execute it with "wirecheck replay"`},
	{prefix: `{"wirecheck":"history"`, what: "a history that wirecheck recorded", remedy: `judge it with "wirecheck check"`},
	{prefix: "BZh", what: "compressed with bzip2", remedy: decompressIt},
	{prefix: "\xfd7zXZ\x00", what: "compressed with xz", remedy: decompressIt},
	{prefix: "\x04\x22\x4d\x18", what: "compressed with lz4", remedy: decompressIt},
	{prefix: "PK\x03\x04", what: "a zip archive", remedy: "unpack it and name the files in it"},
	{look: like(`(?s)^.{257}ustar`), what: "a tar archive", remedy: "unpack it and name the files in it"},
	{prefix: "PGDMP", what: "a database dump (pg_dump's custom format)", remedy: `the database before the first statement is what "wirecheck replay --snapshot" takes, as plain SQL`},
	{look: like(`^(?:/\*M?!999999.*\n)?-- (?:MySQL|MariaDB) dump |^--\r?\n-- PostgreSQL database (?:cluster )?dump`),
		what: "a database dump", remedy: `the database before the first statement is what "wirecheck replay --snapshot" takes`},
	{prefix: "\xfebin", what: "a binary log" + noReads, remedy: statementLogs},
	{look: like(`(?m)^# at \d+\r?\n#\d{6} [ \d]\d:\d\d:\d\d server id \d+ +end_log_pos `), what: "a binary log as mysqlbinlog prints it" + noReads, remedy: statementLogs},
	{look: like(`^(?:\S+[|\t,]\d+[|\t,])?(?:BEGIN(?: \d+)?\r?\n|COMMIT(?: \d+)?(?: \(at .*\))?\r?\n|table \S+: (?:INSERT|UPDATE|DELETE|TRUNCATE): )`),
		what: "the output of logical decoding" + noReads, remedy: "csvlog with log_statement = all, log_duration = on tells the statements"},
	{look: like(`^\{"(?:change|action|xid)":`), what: "the output of logical decoding (wal2json)" + noReads,
		remedy: "csvlog with log_statement = all, log_duration = on tells the statements"},
	{look: like(`(?i)^"?thread_id"?[\t,]"?event_id"?[\t,].*(?:timer_start|event_name)`),
		what:   "a table of performance_schema, which keeps the last events only and leaves out texts and the order among sessions",
		remedy: statementLogs},
	{look: like(`(?i)^"?event_time"?[\t,]"?user_host"?[\t,]`), what: "the table mysql.general_log", remedy: "log_output = FILE, and import the file"},
	{look: like(`(?i)^"?start_time"?[\t,]"?user_host"?[\t,]`), what: "the table mysql.slow_log", remedy: "log_output = FILE, and import the file"},
	{look: like(`^\s*(?:<\?xml[^>]*>\s*)?<AUDIT|^\[?\s*\{\s*"(?:audit_record"|timestamp"\s*:\s*"[^"]*"\s*,\s*"id"\s*:\s*\d+\s*,\s*"class")`),
		what: "an audit log of MySQL Enterprise or Percona Server", remedy: "the general log, or the slow log with long_query_time = 0 and log_slow_extra = ON, tells the statements"},
	{look: like(`(?m)^(?:<\d+>)?(?:\d )?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) \S+ postgres(?:\[\d+\]:| \d+ )`),
		what: "PostgreSQL's log as syslog writes it, which cuts long statements into pieces", remedy: "log_destination = csvlog"},
	{look: like(`(?m)^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*Z? +\d+ \[(?:Note|Warning|ERROR|System)\]`), what: "an error log of the MySQL family, which has no statements", remedy: statementLogs},
	{look: like(`(?m)^\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d\d:\d\d\] \[[A-Z]+\]`), what: "TiDB's server log", remedy: "TiDB's slow log with tidb_slow_log_threshold = 0, or a packet capture, tells the statements"},
	{look: like(`(?m)^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d+ (?:\S+ +(?:In|Out) +)?IP6? \S+ > \S+: `), what: "tcpdump's text", remedy: "tcpdump -s 0 -w FILE writes a packet capture"},
	{look: like(`(?m)^# Rank +Query ID `), what: "a report of pt-query-digest", remedy: "import the slow log that it was made of"},
	{prefix: "\xa1\xb2\xcd\x34", what: oldPcap, remedy: "editcap -F pcap makes a usual one of it"},
	{prefix: "\x34\xcd\xb2\xa1", what: oldPcap, remedy: "editcap -F pcap makes a usual one of it"},
	{look: isPgreplay, what: "pgreplay's own form of a log", remedy: "import the csvlog or stderr log that it was made of"},
	{look: like(`(?m)^.{0,200}?(?:LOG|ERROR|FATAL|WARNING):  \S`), what: "like PostgreSQL's log in text form, with an unusual log_line_prefix",
		remedy: `name it: --format stderr --prefix "..." (SHOW log_line_prefix)`},
	{look: like(`^\x00{64}`), what: "filled with zero bytes at its beginning, as after a crash of the machine", remedy: "cut them off, or name the format with --format"},
}
