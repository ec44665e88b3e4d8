package pgwire_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestUnnoticed plays two sessions, of which the second one changes what the first one works with: each message must be the server's.
func TestUnnoticed(t *testing.T) {
	srv := testserver.Postgres(t)
	scripts := map[string][]string{
		"our questions": {
			// A client that is idle and has asked for nothing yet.
			"2 Q SELECT query, state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
			"1 P |SELECT v FROM t WHERE k = $1", "1 D S", "1 S", "2 Q CREATE TABLE x (a int)", "1 B |||", "1 E", "1 S", "1 B ||1", "1 E", "1 S",
			"1 P named|SELECT v FROM t WHERE k = $1", "1 S", "2 Q DROP TABLE x", "1 B  named||1", "1 E", "1 S",
			"1 Q SELECT name, statement FROM pg_prepared_statements WHERE name <> 'named'",
			// current_schema() makes the schema for temporary tables, so that the transaction cannot be prepared.
			"1 Q SET search_path = 'pg_temp'", "1 Q BEGIN", "1 Q SELECT current_schema() ~ 'pg_temp'", "1 Q PREPARE TRANSACTION 'a'",
			"1 Q SET search_path = 'public'", "1 Q BEGIN", "1 Q SELECT current_schema()", "1 Q ROLLBACK",
		},
		"columns change": {
			"1 P s|SELECT * FROM t WHERE k = $1", "1 P e|SELECT v FROM t WHERE k = 1", "1 P w|UPDATE t SET v = v", "1 D Ss", "1 S", "1 B  s||1|1,0", "1 E", "1 S",
			"2 Q ALTER TABLE t ADD COLUMN more int", "1 B  s||1|1,0", "1 E", "1 S", "1 B  e|||1", "1 E", "1 S", "1 B  w||", "1 E", "1 S",
			"1 Q SELECT 1", "1 B  s||1|1,0,0", "1 E", "1 S", "1 B  e|||1,1", "1 E", "1 S",
			"2 Q ALTER TABLE t DROP CONSTRAINT t_pkey", "1 B  e||", "1 E", "1 S", "1 B  s||1|1,0", "1 E", "1 S",
			"2 Q ALTER TABLE t DROP COLUMN k", "1 B  e||", "1 E", "1 S", "1 B  s||1|1,0", "1 E", "1 S", "1 B  w||", "1 E", "1 S",
		},
		// Another client changes the schema directly.
		"changes behind the proxy": {
			"1 P e|SELECT v FROM t WHERE v = 'a'", "1 S", "1 B  e||", "1 E", "1 S", "0 Q ALTER TABLE t DROP COLUMN k", "1 B  e||", "1 E", "1 S",
			"0 Q ALTER TABLE t ADD COLUMN k int PRIMARY KEY DEFAULT 1", "1 Q CREATE TABLE x (a int)", "1 Q SELECT v FROM t", "0 Q ALTER TABLE t RENAME k TO kk",
			"1 Q SELECT v FROM t", "1 Q SELECT v FROM t", "0 Q ALTER TABLE t RENAME kk TO k", "1 Q SELECT v FROM t; SELECT 1", "1 P |SELECT v FROM t", "1 B  ||", "1 D P", "1 E", "1 S",
			"0 Q ALTER TABLE t RENAME k TO kk", "1 P |SELECT v FROM t", "1 B  ||", "1 D P", "1 E", "1 S", "1 q SELECT v FROM t", "1 W Z 1",
		},
		"keys that are gone in a block": {
			"0 Q CREATE TABLE u (k int PRIMARY KEY, v text, n int); INSERT INTO u VALUES (1, 'a', 1), (2, 'b', 2)", "1 Q SELECT v FROM u WHERE NOT EXISTS (SELECT FROM t WHERE t.v = u.v) ORDER BY v", "1 Q BEGIN", "0 Q ALTER TABLE u RENAME k TO kk",
			"1 Q SELECT v FROM u WHERE NOT EXISTS (SELECT FROM t WHERE t.v = u.v) ORDER BY v", "1 Q SELECT v FROM u WHERE NOT EXISTS (SELECT FROM t WHERE t.k = u.k) ORDER BY nothere", "1 Q ROLLBACK",
			"0 Q ALTER TABLE u RENAME kk TO k", "1 Q SELECT v FROM u", "1 Q BEGIN", "0 Q ALTER TABLE u RENAME n TO m", "1 Q SELECT v FROM u ORDER BY n LIMIT 1", "1 Q ROLLBACK",
		},
		"what foreign keys change behind the proxy": {
			"0 Q CREATE TABLE p (k int PRIMARY KEY); CREATE TABLE c (k int, p int REFERENCES p ON DELETE CASCADE); INSERT INTO p SELECT generate_series(1, 9); INSERT INTO c SELECT k, k FROM p",
			"1 Q DELETE FROM p WHERE k = 1", "1 Q SELECT count(*) FROM c", "0 Q ALTER TABLE c RENAME p TO q", "1 Q DELETE FROM p WHERE k = 2", "1 P |DELETE FROM p WHERE k = 3 RETURNING *", "1 D S", "1 B  ||", "1 E", "1 S",
			"0 Q ALTER TABLE c RENAME q TO p", "1 Q BEGIN", "1 Q DELETE FROM p WHERE k = 4", "1 Q COMMIT", "1 Q BEGIN", "0 Q ALTER TABLE c RENAME k TO kk; ALTER TABLE c RENAME p TO q",
			"1 Q DELETE FROM p WHERE k = 5", "1 Q SAVEPOINT wirecheck", "1 Q DELETE FROM p WHERE k = 6", "1 Q ROLLBACK TO wirecheck", "1 Q COMMIT", "1 P n|DELETE FROM p WHERE k = $1", "1 S", "1 Q BEGIN", "0 Q DROP TABLE c",
			"1 Q DELETE FROM p WHERE k = 7", "1 P |DELETE FROM p WHERE k = 8", "1 B  ||", "1 E", "1 S", "1 B  n||9", "1 E", "1 S", "1 Q COMMIT", "1 Q SELECT * FROM p",
		},
		// The direct session reads the index up to the first row that will do.
		"the ends of an index": {"0 Q INSERT INTO t SELECT i, 'v' || i % 3 FROM generate_series(2, 9) i; ANALYZE t", "1 Q SET enable_seqscan = off", "1 Q SELECT min(k) FROM t WHERE 1 / (k - 5) < 2", "1 Q SELECT max(k) FROM t WHERE 1 / (k - 5) < 2", "1 Q SELECT k FROM t WHERE EXISTS (SELECT FROM t WHERE 1 / (k - 5) < 2) ORDER BY k LIMIT 1", "1 Q SELECT DISTINCT v FROM t WHERE EXISTS (SELECT FROM t WHERE 1 / (k - 5) < 2) ORDER BY 1", "1 Q SELECT DISTINCT v FROM t WHERE k IN (SELECT k FROM t WHERE 1 / (k - 5) < 2) ORDER BY 1", "1 Q RESET ALL"},
		"in a failed transaction": {
			"1 P e|SELECT v FROM t WHERE v = 'a'", "1 S", "1 Q BEGIN", "1 Q SELECT 1 / 0", "2 Q CREATE TABLE x (a int)", "1 B  e||1", "1 S", "1 B  e||", "1 S", "1 Q ROLLBACK", "1 B  e||", "1 E", "1 S",
		},
	}
	play := func(addr, database string, steps []string) []string {
		on := map[string]*wire{"0": dialWire(t, srv.Address(), testserver.AppTrust, database)}
		for _, who := range []string{"1", "2"} {
			on[who] = dialWire(t, addr, testserver.AppTrust, database)
		}
		var out []string
		for _, step := range steps {
			out = append(out, step)
			who, step, _ := strings.Cut(step, " ")
			out = append(out, on[who].step(step)...)
		}
		for _, w := range on {
			_ = w.conn.Close() // so that the databases can be dropped
		}
		return out
	}
	for name, steps := range scripts {
		if name == "our questions" {
			// The third session would show, and that of the setup, which ends.
			steps = append([]string{"0 X", "2 Q DO $$ BEGIN LOOP PERFORM pg_stat_clear_snapshot(); EXIT WHEN (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend') = 2; PERFORM pg_sleep(0.01); END LOOP; END $$"}, steps...)
		}
		t.Run(name, func(t *testing.T) {
			setup := []string{"CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')"}
			direct := srv.Database(t).As(testserver.AppTrust)
			direct.Exec(t, setup...)
			want := play(srv.Address(), direct.Name, steps)
			db := srv.Database(t).As(testserver.AppTrust)
			db.Exec(t, setup...)
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{}))
			if d := cmp.Diff(want, play(r.addr.String(), db.Name, steps)); d != "" {
				t.Errorf("-direct +observe:\n%s", d)
			}
		})
	}
}

// TestCloseNotify ends sessions within TLS: the end is said, so that it cannot be mistaken for a cut.
func TestCloseNotify(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	r := map[string]string{"direct": srv.Address()}
	for _, mode := range modes {
		r[string(mode)] = start(t, proxy.Config{Upstream: upstream(srv), Mode: mode, ClientTLS: proxy.ClientTLS{
			Cert: filepath.Join(filepath.Dir(srv.CAFile), "server.pem"), Key: filepath.Join(filepath.Dir(srv.CAFile), "server.key"),
		}}, observer(&events{})).addr.String()
	}
	for name, addr := range r {
		for _, last := range []string{"X", "Q SELECT pg_terminate_backend(pg_backend_pid())"} {
			raw, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := raw.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
				t.Fatal(err)
			}
			if n, err := raw.Read(make([]byte, 1)); n != 1 {
				t.Fatal(err)
			}
			conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
			params := fmt.Sprintf("\x00\x03\x00\x00user\x00%s\x00database\x00%s\x00\x00", testserver.AppTrust, db.Name)
			if _, err := conn.Write(append([]byte{0, 0, 0, byte(len(params) + 4)}, params...)); err != nil {
				t.Fatal(err)
			}
			kind, sql, _ := strings.Cut(last, " ")
			body := []byte(sql)
			if sql != "" {
				body = append(body, 0)
			}
			if _, err := conn.Write(message(kind[0], body)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("%s, %s: %v; want EOF behind close_notify", name, last, err)
			}
			_ = conn.Close() // the other side is gone
		}
	}
}
