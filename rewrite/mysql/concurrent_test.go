package mysql

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"wirecheck/history"
)

// Many sessions write the same rows. What they captured must be one chain of versions for each row: each committed write
// replaced a version that was committed, no two replaced the same one, and each read saw a committed version or its own.
func TestConcurrentWritersMakeChains(t *testing.T) {
	const workers, rounds = 6, 60
	p := newPair(t, 0)
	type done struct {
		accesses []history.Access
		token    string
		commit   bool
	}
	results := make([][]done, workers)
	var wg sync.WaitGroup
	for w := range workers {
		side := &side{db: p.wired.db, conn: dial(t, p.wired.db, 0)}
		side.exec(t, "SET innodb_lock_wait_timeout=20")
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range rounds {
				id := w*rounds + i
				d := done{token: fmt.Sprintf("T%d.chain", id), commit: random.IntN(4) > 0}
				side.conn.query(t, "BEGIN")
				for n := range 1 + random.IntN(3) {
					row := 1 + random.IntN(4)
					sql := []string{
						fmt.Sprintf("UPDATE account SET balance = balance + 1 WHERE id = %d", row),
						fmt.Sprintf("UPDATE account SET note = '%d' WHERE id >= %d ORDER BY id", id, row),
						fmt.Sprintf("DELETE FROM account WHERE id = %d", row),
						fmt.Sprintf("INSERT IGNORE INTO account (id, owner, balance) VALUES (%d, 'x', 1)", row),
						fmt.Sprintf("INSERT INTO account (id, owner, balance) VALUES (%d, 'x', 1) ON DUPLICATE KEY UPDATE balance = balance + 1", row),
						"SELECT * FROM account ORDER BY id",
						"SELECT balance, COUNT(note) FROM account GROUP BY balance",
						fmt.Sprintf("SELECT * FROM account WHERE id = %d FOR UPDATE", row),
						fmt.Sprintf("UPDATE account SET balance = 1 WHERE id = %d", row),
						fmt.Sprintf("SELECT DISTINCT note FROM account WHERE id >= %d ORDER BY note", row),
						"SELECT note FROM account WHERE id < 3 UNION SELECT owner FROM account WHERE note <> ''",
					}[random.IntN(11)]
					stamp := fmt.Sprintf("T%d.%d.chain", id, n+1)
					side.conn.query(t, SetToken(stamp))
					plan := p.rewriter.Script(sql, p.catalog, p.session)
					r := side.conn.send(t, plan)
					log, _, err := DecodeLog([]byte(side.fetchLog(t)))
					if err != nil {
						t.Error(err)
						return
					}
					if r.err != "" { // a deadlock: all is undone
						d.commit = false
						break
					}
					d.accesses = append(d.accesses, log[stamp]...)
					for _, row := range r.rows {
						if n := len(row) - plan.Plans[0].Hidden; n < len(row) {
							a, err := plan.Plans[0].Decode(nil, row[n:])
							if err != nil {
								t.Error(err)
								return
							}
							d.accesses = append(d.accesses, a...)
						}
					}
				}
				if d.commit {
					side.conn.query(t, "COMMIT")
				} else {
					side.conn.query(t, "ROLLBACK")
				}
				results[w] = append(results[w], d)
			}
		})
	}
	wg.Wait()
	commit := make(map[string]bool)
	replaced := make(map[history.Row]map[string]history.Access)
	writes, reads := 0, 0
	for _, list := range results {
		for _, d := range list {
			commit[d.token] = d.commit
		}
	}
	for _, list := range results {
		for _, d := range list {
			for _, a := range d.accesses {
				switch {
				case !a.Op.Writes():
					reads++
					if a.Writer != "" && a.Writer != d.token && !commit[a.Writer] {
						t.Errorf("%s read %+v, which was rolled back", d.token, a)
					}
				case d.commit:
					writes++
					if a.PrevWriter != "" && a.PrevWriter != d.token && !commit[a.PrevWriter] {
						t.Errorf("%s replaced %+v, which was rolled back", d.token, a)
					}
					if replaced[a.Row] == nil {
						replaced[a.Row] = make(map[string]history.Access)
					}
					if other, twice := replaced[a.Row][a.Prev]; twice {
						t.Errorf("two writes replaced one version: %+v and %+v", a, other)
					}
					replaced[a.Row][a.Prev] = a
				}
			}
		}
	}
	for row, by := range replaced { // each version but the first was made by a write that is known, or an INSERT
		made := make(map[string]bool)
		for _, a := range by {
			made[a.Version] = true
		}
		for prev, a := range by {
			if a.PrevOrder > 2 && !made[prev] {
				t.Errorf("%v: nobody made %q, which %+v replaced", row, prev, a)
			}
		}
	}
	if writes < 100 || reads < 100 {
		t.Errorf("only %d writes and %d reads", writes, reads)
	}
}
