package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/shop"
)

// loadStep is one transaction of a random load: as one, or as a request with tags whose statements are transactions of their own. It reads rows by key and by
// conditions, writes back what it read, inserts, deletes, undoes a part, rolls back.
func loadStep(rng *rand.Rand, client, n int, postgres bool) (list []string) {
	id := func() int { return 1 + rng.IntN(5) }
	row, room := id(), rng.IntN(3)
	statements := []string{
		fmt.Sprintf("SELECT stock FROM product WHERE id = %d", row),
		fmt.Sprintf("SELECT count(*) FROM booking WHERE room = %d", room),
		fmt.Sprintf("SELECT id, stock FROM product WHERE stock > %d", rng.IntN(8)),
		fmt.Sprintf("UPDATE product SET stock = %d WHERE id = %d", rng.IntN(10), row),
		fmt.Sprintf("UPDATE product SET stock = stock - 1 WHERE id = %d", id()),
		fmt.Sprintf("UPDATE product SET version = version + 1 WHERE stock = %d", rng.IntN(10)),
		fmt.Sprintf("INSERT INTO booking (room, who) VALUES (%d, %d)", room, client),
		fmt.Sprintf("DELETE FROM booking WHERE room = %d AND who = %d", room, client),
		fmt.Sprintf("SELECT stock FROM product WHERE id = %d FOR UPDATE", row),
	}
	for range 2 + rng.IntN(4) {
		list = append(list, statements[rng.IntN(len(statements))])
	}
	if rng.IntN(2) == 0 {
		for i := range list {
			list[i] += fmt.Sprintf(" /*route='%%2Fbuy',traceparent='00-%032x-%016x-01'*/", client*1000+n, i+1)
		}
		return list
	}
	if rng.IntN(4) == 0 {
		list = append(list[:1:1], append([]string{"SAVEPOINT here", list[1], "ROLLBACK TO SAVEPOINT here"}, list[1:]...)...)
	}
	level := []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}[rng.IntN(3)]
	begin := []string{"BEGIN ISOLATION LEVEL " + level}
	if !postgres {
		begin = []string{"SET TRANSACTION ISOLATION LEVEL " + level, "BEGIN"}
	}
	end := "COMMIT"
	if rng.IntN(6) == 0 {
		end = "ROLLBACK"
	}
	return append(append(begin, list...), end)
}

// TestRecordedLoad puts one program with two listeners before two servers under a random load and records it. check, which sifts the history before it judges,
// says of the trace what was said live: the same findings, word for word, the possible ones too, in the same order, and the same coverage but for one count.
func TestRecordedLoad(t *testing.T) {
	t.Parallel()
	var worlds []*world
	record := filepath.Join(t.TempDir(), "load.wct")
	args := []string{"proxy", "--record", record, "--format", "json", "--possible"}
	for _, engine := range []string{"postgres", "mariadb"} {
		counter := map[string]string{"postgres": "serial", "mariadb": "int AUTO_INCREMENT"}[engine]
		w := newWorld(t, engine, "CREATE TABLE product (id int PRIMARY KEY, stock int, version int)", "CREATE TABLE booking (id "+counter+" PRIMARY KEY, room int, who int)")
		w.run(t, "INSERT INTO product VALUES (1, 9, 0), (2, 8, 0), (3, 7, 0), (4, 6, 0), (5, 5, 0)")
		scheme := map[string]string{"postgres": "postgres", "mariadb": "mysql"}[engine]
		args = append(args, "--listen", scheme+"://"+anyPort, "--upstream", fmt.Sprintf("%s://%s:%d", scheme, w.direct.Host, w.direct.Port))
		worlds = append(worlds, w)
	}
	p := startProgram(t, args...)
	var all sync.WaitGroup
	for i, w := range worlds {
		target := w.direct
		target.Port = p.port(t, []string{"postgres", "mysql"}[i], nil)
		for client := range 4 {
			all.Go(func() {
				c, err := target.Connect(t.Context(), shop.Driver)
				if err != nil {
					t.Errorf("%v\n%s", err, p.stderr.String())
					return
				}
				defer c.Close()
				rng := rand.New(rand.NewPCG(uint64(i), uint64(client)))
				for n := range 60 {
					for _, sql := range loadStep(rng, client, n, i == 0) {
						if _, err := c.Do(t.Context(), sql); err != nil { // a conflict, mostly: the transaction is over, or is not to go on
							_, _ = c.Do(t.Context(), "ROLLBACK")
							break
						}
					}
				}
			})
		}
	}
	all.Wait()
	if status := p.end(t); status != int(exitFound) {
		t.Fatalf("exit status %d\n%s", status, p.stderr.String())
	}
	type said struct {
		Findings any
		Coverage map[string]any
	}
	var live, again said
	if err := json.Unmarshal(p.stdout.Bytes(), &live); err != nil {
		t.Fatal(err)
	}
	out, warned, status := command(t, "check", "--possible", "--format", "json", record)
	if err := json.Unmarshal([]byte(out), &again); err != nil || status != exitFound || warned != "" {
		t.Fatalf("exit status %d, %v, %s", status, err, warned)
	}
	// Live, what is long over is forgotten, and not compared with what comes behind it: check, which keeps all, may count more pairs.
	before, _ := live.Coverage["unsettled"].(float64)
	if behind, _ := again.Coverage["unsettled"].(float64); behind < before {
		t.Errorf("unsettled: %v live, %v by check", before, behind)
	}
	delete(live.Coverage, "unsettled")
	delete(again.Coverage, "unsettled")
	if d := cmp.Diff(live, again); d != "" {
		t.Errorf("(-live +check):\n%s", d)
	}
	findings, _ := live.Findings.([]any)
	text := p.stdout.String()
	for _, kind := range []string{`"kind":"anomaly"`, `"kind":"unknown"`, "lost update", "between requests", "predicate"} {
		if !strings.Contains(strings.ReplaceAll(text, `": `, `":`), kind) {
			t.Errorf("the load shows no %s in %d findings", kind, len(findings))
		}
	}
}
