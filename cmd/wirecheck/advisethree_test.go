package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/explore"
)

var smallBankPrograms = flag.Int("smallbank-programs", 0, "how many of SmallBank's five programs to execute; 0: the three of the dangerous structure, without the reads that are no part of it, on PostgreSQL alone")

// smallBank are the programs of SmallBank for one customer, one after the other (Alomari, Cahill, Fekete and Röhm, ICDE 2008, section III.A). All start
// with 100 in savings and in checking.
func smallBank(customer int) [][]string {
	savings, checking := fmt.Sprintf("SELECT bal FROM savings WHERE custid = %d", customer), fmt.Sprintf("SELECT bal FROM checking WHERE custid = %d", customer)
	pay := func(table, change string, customer int) string {
		return fmt.Sprintf("UPDATE %s SET bal = %s WHERE custid = %d", table, change, customer)
	}
	programs := [][]string{
		transaction("WriteCheck", savings, checking, pay("checking", "bal - 5", customer)),
		transaction("TransactSaving", savings, pay("savings", "bal - 20", customer)),
		transaction("Balance", savings, checking),
		transaction("DepositChecking", pay("checking", "bal + 10", customer)),
		transaction("Amalgamate", savings, checking, pay("savings", "0", customer), pay("checking", "0", customer), pay("checking", "bal + 185", customer+1)),
	}
	if *smallBankPrograms == 0 {
		return [][]string{transaction("WriteCheck", savings, pay("checking", "bal - 5", customer)), transaction("TransactSaving", pay("savings", "bal - 20", customer)), programs[2]}
	}
	return programs[:*smallBankPrograms]
}

// TestAdviseSmallBank: at snapshot isolation no two programs of SmallBank go wrong, and of all three at once only those of its dangerous structure do.
// To lock what WriteCheck reads of the savings (promotion of the edge to TransactSaving) mends it, as the literature has it. The capture is one
// client's, one program after the other. The near miss is every other triple.
func TestAdviseSmallBank(t *testing.T) {
	t.Parallel()
	const schema = "CREATE TABLE savings (custid INT PRIMARY KEY, bal INT);\nCREATE TABLE checking (custid INT PRIMARY KEY, bal INT);\n" +
		"INSERT INTO savings VALUES (1, 100), (2, 100), (3, 100), (4, 100);\nINSERT INTO checking VALUES (1, 100), (2, 100), (3, 100), (4, 100);\n"
	levels := map[string]string{"postgres": "repeatable read", "mariadb": "snapshot"}
	if *smallBankPrograms == 0 {
		delete(levels, "mariadb") // TestAdviseRing executes three at once there
	}
	for engine, snapshot := range levels {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			requests := slices.Concat(smallBank(1), smallBank(3))
			if engine == "postgres" { // there the application's level can be told to each BEGIN
				for _, r := range requests {
					r[0] = strings.Replace(r[0], "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", 1)
				}
			}
			a := advised(t, engine, exitFound, schema, serially(requests...))
			name := func(p *explore.Pair) string {
				var list []string
				for _, n := range []int{p.A, p.B, p.C} {
					if n > 0 {
						list = append(list, a.Shapes[n-1].Name)
					}
				}
				slices.Sort(list)
				return strings.Join(list, " ")
			}
			const dangerous = "Balance TransactSaving WriteCheck"
			tried := 0
			for _, p := range slices.Concat(a.Pairs, a.Triples) {
				o := p.Levels[slices.IndexFunc(p.Levels, func(o *explore.Outcome) bool { return o.Level == snapshot })]
				if (o.Wrong > 0) != (name(p) == dangerous) || o.Possible > 0 {
					t.Errorf("%s at %s: wrong in %d, possible in %d of %d %s", name(p), snapshot, o.Wrong, o.Possible, o.Tried, o.Untried)
				}
				if p.C > 0 && o.Tried > 0 {
					tried++
				}
				if name(p) != dangerous || engine != "postgres" {
					continue
				}
				if found := strings.Join(o.Found, ", "); found != "G2-item" {
					t.Errorf("%s is called %q", dangerous, found)
				}
				if !slices.ContainsFunc(p.Remedies, func(r *explore.Proof) bool {
					return strings.Contains(r.SQL, "savings") && strings.Contains(r.Text, fmt.Sprint("shape ", 1+slices.IndexFunc(a.Shapes, func(s *explore.ShapeAdvice) bool { return s.Name == "WriteCheck" })))
				}) {
					t.Errorf("the promotion is not proven; proven: %+v, tried: %+v", p.Remedies, p.Tried)
				}
			}
			if tried < 4 {
				t.Errorf("%d triples were executed, want more: %+v", tried, a.Triples)
			}
		})
	}
}

// TestAdviseRing: three transactions of one shape, each of which writes what the next one reads. No two of them go wrong, at any level; all three do, below
// serializable. The near miss is a chain of three, which has an order. A read with DISTINCT cannot be locked, so there is no remedy to execute.
func TestAdviseRing(t *testing.T) {
	t.Parallel()
	const schema = "CREATE TABLE light (id INT PRIMARY KEY, color INT);\nINSERT INTO light VALUES (1, 10), (2, 20), (3, 30), (4, 40);\n"
	for _, engine := range []string{"postgres", "mariadb"} {
		for name, to := range map[string]int{"ring": 1, "chain": 4} {
			t.Run(engine+" "+name, func(t *testing.T) {
				t.Parallel()
				var requests [][]string
				for i, next := range []int{2, 3, to} {
					requests = append(requests, transaction("pass", fmt.Sprintf("SELECT DISTINCT color FROM light WHERE id = %d", i+1), fmt.Sprintf("UPDATE light SET color = 10 WHERE id = %d", next)))
				}
				want := exitClean
				if name == "ring" {
					want = exitFound
				}
				a := advised(t, engine, want, schema, serially(requests...))
				for _, p := range a.Pairs {
					for _, o := range p.Levels {
						if o.Wrong+o.Possible > 0 || !o.All {
							t.Errorf("two at %s: wrong in %d, possible in %d of %d: %s", o.Level, o.Wrong, o.Possible, o.Tried, o.Untried)
						}
					}
				}
				if len(a.Triples) != map[string]int{"ring": 1, "chain": 0}[name] {
					t.Fatalf("triples: %+v", a.Triples)
				}
				for _, p := range a.Triples {
					for _, o := range p.Levels {
						if (o.Wrong > 0) != (o.Level != "serializable") && (o.Tried > 0 || o.Level == p.Level) || o.Possible > 0 {
							t.Errorf("three at %s: wrong in %d, possible in %d of %d: %s", o.Level, o.Wrong, o.Possible, o.Tried, o.Untried)
						}
					}
				}
			})
		}
	}
}

// TestAdviseThreeLate: where one of three knows by its version column that it came too late, the other two are left, which were tried before. The near miss
// is SmallBank's dangerous structure, in which nobody knows it.
func TestAdviseThreeLate(t *testing.T) {
	t.Parallel()
	var requests [][]string
	for i := range 2 {
		requests = append(requests,
			transaction("buy", "SELECT n, version FROM ware WHERE id = 1", fmt.Sprintf("UPDATE ware SET n = %d, version = %d WHERE id = 1 AND version = %d", 49-i, 2+i, 1+i)),
			transaction("add", "UPDATE ware SET n = n + 1 WHERE id = 2"))
	}
	a := advised(t, "postgres", exitClean, "CREATE TABLE ware (id INT PRIMARY KEY, n INT, version INT);\nINSERT INTO ware VALUES (1, 50, 1), (2, 50, 1);\n", serially(requests...))
	late := 0
	for _, p := range a.Triples {
		for _, o := range p.Levels {
			if late += o.GaveUp; o.Wrong+o.Possible > 0 {
				t.Errorf("%d, %d and %d at %s: wrong in %d, possible in %d of %d", p.A, p.B, p.C, o.Level, o.Wrong, o.Possible, o.Tried)
			}
		}
	}
	if late == 0 {
		t.Errorf("in no triple somebody came too late: %+v", a.Triples)
	}
}
