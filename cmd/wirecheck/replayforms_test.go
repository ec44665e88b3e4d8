package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/mysql"
)

// TestReplayArchive replays from a dump in each of pg_dump's formats. The near miss has no rows.
func TestReplayArchive(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	c := p.connect(t, "shop")
	c.exec("CREATE TABLE stock (id serial PRIMARY KEY, n int)")
	c.exec("INSERT INTO stock (n) VALUES (5), (6)")
	dumps := map[string]string{}
	for _, format := range []string{"custom", "tar", "directory"} {
		dumps[format] = filepath.Join(p.dir, "dump."+format)
		p.dumpAs(t, dumps[format], "--format", format)
	}
	empty := filepath.Join(p.dir, "empty")
	p.dumpAs(t, empty, "--format", "custom", "--schema-only")
	c.close()
	begin := time.Now()
	c = p.connect(t, "shop")
	c.exec("UPDATE stock SET n = n - 1 WHERE id = 1")
	c.exec("DELETE FROM stock WHERE n = 6")
	c.close()
	after := p.dump(t)
	path := p.trace(t, begin)
	dumps["near miss: without rows"] = empty
	for format, dump := range dumps {
		r := replayed(t, exitClean, path, "--snapshot", dump, "--engine", "postgres", "--oracle", "none", "--compare", after, "--only", "application=shop")
		r.sameAsCaptured(t)
		if missing := len(r.Tables) == 1 && r.Tables[0].OnlyThere > 0; len(r.Tables) != 1 || missing != (dump == empty) {
			t.Errorf("%s: the tables are %+v", format, r.Tables)
		}
	}
}

// dumpAs runs pg_dump.
func (p *production) dumpAs(t *testing.T, path string, args ...string) {
	t.Helper()
	args = append(args, "-f", path, fmt.Sprintf("postgres://%s:%s@%s/shop", p.User, p.Password, p.Address()))
	if out, err := exec.CommandContext(t.Context(), "pg_dump", args...).CombinedOutput(); err != nil {
		t.Fatalf("pg_dump: %v: %s", err, out)
	}
}

// joinedCapture is a packet capture that begins in the middle of a session of the MySQL family: the statements, each answered by a number of affected rows.
func joinedCapture(t *testing.T, statements ...string) string {
	t.Helper()
	const rawIP, server, client = 101, 3306, 50000
	var b bytes.Buffer
	order := binary.LittleEndian
	b.Write(order.AppendUint32(order.AppendUint32(order.AppendUint32(order.AppendUint32([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, 0), 0), 65536), rawIP))
	seq, at := map[bool]uint32{true: 100, false: 200}, 0
	packet := func(fromClient bool, number byte, body string) {
		payload := append([]byte{byte(len(body)), byte(len(body) >> 8), 0, number}, body...)
		from, to, src, dst := byte(2), byte(1), uint16(server), uint16(client)
		if fromClient {
			from, to, src, dst = to, from, dst, src
		}
		ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 9, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to}
		tcp := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, src), dst)
		tcp = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(tcp, seq[fromClient]), seq[!fromClient])
		tcp = append(tcp, 0x50, 0x10, 3, 0xe8, 0, 0, 0, 0)
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(tcp)+len(payload)))
		seq[fromClient] += uint32(len(payload))
		at++
		n := uint32(len(ip) + len(tcp) + len(payload))
		head := order.AppendUint32(order.AppendUint32(order.AppendUint32(order.AppendUint32(nil, 1_700_000_000), uint32(at*1000)), n), n)
		for _, part := range [][]byte{head, ip, tcp, payload} {
			b.Write(part)
		}
	}
	for _, sql := range statements {
		packet(true, 0, "\x03"+sql)
		packet(false, 1, "\x00\x01\x00\x02\x00\x00\x00")
	}
	dir := t.TempDir()
	capture, path := filepath.Join(dir, "shop.pcap"), filepath.Join(dir, "shop.wct")
	if err := os.WriteFile(capture, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said, status := command(t, "trace", "import", capture, "-o", path); status != exitClean {
		t.Fatalf("import: status %d\n%s%s", status, out, said)
	}
	return path
}

// TestReplayJoined replays a packet capture that was joined in the middle of a session, which says its protocol alone: --product names the product.
func TestReplayJoined(t *testing.T) {
	t.Parallel()
	path := joinedCapture(t, "UPDATE stock SET n = n - 1 WHERE id = 1", "UPDATE stock SET n = n - 1 WHERE id = 2")
	snapshot := file(t, "CREATE TABLE stock (id INT PRIMARY KEY, n INT);\nINSERT INTO stock VALUES (1, 5), (2, 5);\n")
	r := replayed(t, exitClean, path, "--snapshot", snapshot, "--product", "mariadb", "--oracle", "none")
	if r.sameAsCaptured(t); r.Replay.Statements != 2 {
		t.Errorf("%d statements, want 2", r.Replay.Statements)
	}
	out, said, status := command(t, "replay", path, "--snapshot", snapshot, "--product", "postgres", "--engine", "mariadb", "--oracle", "none", "--log-level", "error")
	if status != exitFailed || !strings.Contains(said, "the trace is of postgres, and cannot be replayed on MariaDB") {
		t.Errorf("near miss, the wrong product: exit status %d\n%s%s", status, out, said)
	}
}

// TestReplayOneScreen: whatever a replay finds, its text is about one screen, and says how much more there is.
func TestReplayOneScreen(t *testing.T) {
	t.Parallel()
	lines, schema := []string{}, ""
	for table := range 12 {
		schema += fmt.Sprintf("CREATE TABLE stock%d (id INT PRIMARY KEY, n INT);\nINSERT INTO stock%d VALUES (1, 100);\n", table, table)
		for session := range 2 {
			for _, sql := range transaction(fmt.Sprint("buy", table), fmt.Sprintf("SELECT n FROM stock%d WHERE id = 1", table), fmt.Sprintf("UPDATE stock%d SET n = %d WHERE id = 1", table, 99-session), "SELECT * FROM gone") {
				lines = append(lines, fmt.Sprintf("%d: %s", 8+session, sql))
			}
		}
	}
	path, snapshot := loggedTrace(t, lines...), file(t, schema)
	args := []string{"replay", path, "--snapshot", snapshot, "--engine", "mariadb", "--interleavings", "random:4", "--window", "2", "--seed", "1", "--log-level", "error", "--no-progress"}
	out, said, status := command(t, args...)
	if status != exitFound || !strings.Contains(out, "LOST UPDATE") {
		t.Fatalf("exit status %d\n%s%s", status, out, said)
	}
	if n := strings.Count(out, "\n"); n > 100 || len(out) > 10_000 || !strings.Contains(out, "more (all: --format html, or --out)") {
		t.Errorf("%d lines, %d bytes:\n%s", n, len(out), out)
	}
	folder := filepath.Join(t.TempDir(), "found")
	command(t, append(args, "--out", folder)...)
	whole, err := os.ReadFile(filepath.Join(folder, "report.txt"))
	if err != nil || len(whole) < len(out) {
		t.Errorf("the whole report has %d bytes, the screen %d: %v", len(whole), len(out), err)
	}
}

// TestCheckSaysReplay: check of a trace that holds no row versions prints the command that judges it, and that command does.
func TestCheckSaysReplay(t *testing.T) {
	t.Parallel()
	path := loggedPostgres(t, "8: BEGIN", "9: BEGIN", "8: SELECT n FROM stock WHERE item = 1", "9: SELECT n FROM stock WHERE item = 1", "8: UPDATE stock SET n = 99 WHERE item = 1", "8: COMMIT",
		"9: UPDATE stock SET n = 98 WHERE item = 1", "9: COMMIT")
	out, said, status := command(t, "check", path)
	m := regexp.MustCompile(`(?m)^  wirecheck (replay .*) --snapshot snapshot\.sql$`).FindStringSubmatch(out + said)
	if status != exitFailed || m == nil || !strings.Contains(out+said, "pg_dump") {
		t.Fatalf("exit status %d\n%s%s", status, out, said)
	}
	snapshot := file(t, "CREATE TABLE stock (item INT PRIMARY KEY, n INT);\nINSERT INTO stock VALUES (1, 100);\n")
	out, said, status = command(t, append(strings.Fields(m[1]), "--snapshot", snapshot, "--log-level", "error")...)
	if status != exitFound || !strings.Contains(out, "LOST UPDATE") {
		t.Errorf("%s: exit status %d\n%s%s", m[1], status, out, said)
	}
}

// TestReplayBackup replays from a folder of mariadb-backup, which stays as it is. It has several databases: the trace's is taken; one that the backup lacks
// is an error.
func TestReplayBackup(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("mariadb-backup")
	if err != nil {
		t.Skipf("%v: what this test restores cannot be made (apt-get install mariadb-backup)", err)
	}
	server, err := mariadb.Start(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	conn, err := mysql.Connect(t.Context(), server.Target())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"CREATE DATABASE other", "CREATE DATABASE shop", "CREATE TABLE shop.stock (id INT PRIMARY KEY, n INT, name VARCHAR(20))", "INSERT INTO shop.stock VALUES (1, 5, 'it''s'), (2, 5, NULL)",
		"CREATE TRIGGER shop.upper BEFORE UPDATE ON shop.stock FOR EACH ROW SET NEW.name = UPPER(NEW.name)",
	} {
		if err := engine.Exec(t.Context(), conn, sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "backup")
	if out, err := exec.CommandContext(t.Context(), tool, "--no-defaults", "--backup", "--target-dir="+folder, "--datadir="+filepath.Join(server.Folder(), "data"), "--protocol=tcp",
		"--host="+server.Host, fmt.Sprint("--port=", server.Port), "--user="+server.User, "--password="+server.Password).CombinedOutput(); err != nil {
		t.Fatalf("mariadb-backup: %v: %s", err, out)
	}
	before := contents(t, folder)
	path := loggedTrace(t, "8: UPDATE stock SET n = n - 1 WHERE id = 1")
	after := file(t, "CREATE TABLE stock (id INT PRIMARY KEY, n INT, name VARCHAR(20));\nINSERT INTO stock VALUES (1, 4, 'IT''S'), (2, 5, NULL);\n")
	r := replayed(t, exitClean, path, "--snapshot", folder, "--engine", "mariadb", "--oracle", "none", "--compare", after)
	if len(r.Tables) != 1 || r.Tables[0].OnlyHere+r.Tables[0].OnlyThere > 0 {
		t.Errorf("the tables are %+v", r.Tables)
	}
	if contents(t, folder) != before {
		t.Error("the backup has changed")
	}
	out, said, status := command(t, "replay", path, "--snapshot", folder, "--engine", "mariadb", "--oracle", "none", "--database", "gone", "--log-level", "error")
	if status != exitFailed || !strings.Contains(said, "the backup has the databases other, shop: say which one with --database") {
		t.Errorf("another database: exit status %d\n%s%s", status, out, said)
	}
}

// contents are the names and sizes of a folder's files, and when they were changed.
func contents(t *testing.T, folder string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&b, path, info.Size(), info.ModTime())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
