package live_test

import (
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// queueTable is a table of jobs as workers share them.
var queueTable = []string{"CREATE TABLE job (id INT PRIMARY KEY, state VARCHAR(9), worker INT)"}

// queueForms are statements by which a worker takes a job, with 1 for its number.
var queueForms = []struct {
	name, take string
	postgres   bool // written so on PostgreSQL alone
	want       string
	judged     bool
}{
	{"SELECT ... SKIP LOCKED", "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", false, "", true},
	{"UPDATE by the key of a query", "UPDATE job SET worker = 1 WHERE id = (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id", true, "", true},
	{"UPDATE by keys of a query", "UPDATE job SET worker = 1 WHERE id IN (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)", true, "", true},
	{"UPDATE by a list of keys", "UPDATE job SET worker = 1 WHERE id = ANY (ARRAY(SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED))", true, "", true},
	{"DELETE by the key of a query", "DELETE FROM job WHERE id = (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id", true, "", true},
	{"UPDATE ... FROM a query of WITH", "WITH q AS (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE job j SET worker = 1 FROM q WHERE j.id = q.id RETURNING j.id", true, "", true},
	{"DELETE ... USING a query", "DELETE FROM job j USING (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) q WHERE q.id = j.id", true, "", true},
	// Near misses: the first waits for nobody and reads what both then change; the others choose by more than the queue, or not by its key.
	{"SELECT without a lock", "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1", false, "G2 write skew", true},
	{"UPDATE of all but those of a query", "UPDATE job SET worker = 1 WHERE state = 'none' AND id NOT IN (SELECT id FROM job WHERE state = 'new' FOR UPDATE SKIP LOCKED)", true, "", false},
	{"UPDATE by another column than the key", "UPDATE job SET worker = 1 WHERE state = 'none' AND worker = (SELECT worker FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)", true, "", false},
	{"UPDATE beside another query", "UPDATE job SET worker = (SELECT count(*) FROM job) WHERE id = (SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)", true, "G2 write skew", false},
}

// TestQueues: what SKIP LOCKED leaves out may be there, so its condition asks for no other row.
func TestQueues(t *testing.T) { playQueues(newStand(t, 2, queueTable...)) }

// TestQueuesFamily plays them on MariaDB, or MySQL. TiDB has no SKIP LOCKED.
func TestQueuesFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("TiDB has no SKIP LOCKED")
	}
	playQueues(openStand(t, testserver.Family(t).Database(t), true, 2, queueTable...))
}

func playQueues(s *stand) {
	for _, f := range queueForms {
		if f.postgres && s.family {
			continue
		}
		for _, q := range []string{"DELETE FROM job", "INSERT INTO job VALUES (5, 'new', 0), (7, 'new', 0)"} {
			if _, err := ask(s.direct, q); err != nil {
				s.t.Fatal(err)
			}
		}
		found, r := s.play("READ COMMITTED", "1 "+f.take, "2 "+strings.Replace(f.take, "worker = 1", "worker = 2", 1),
			"1 INSERT INTO job VALUES (1, 'new', 0)", "2 INSERT INTO job VALUES (2, 'new', 0)", "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != f.want {
			s.t.Errorf("%s: found %q, want %q; %s", f.name, got, f.want, r.Coverage)
		}
		if c := r.Coverage; (len(c.Unread) == 0) != f.judged {
			s.t.Errorf("%s: judged %v, want %v; %s", f.name, !f.judged, f.judged, c)
		}
	}
}
