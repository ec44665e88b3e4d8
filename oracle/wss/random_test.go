package wss_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"wirecheck/lab/generate"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
)

// casesVariable is how many random cases TestRandom executes at each level; seedVariable where it begins.
const (
	casesVariable = "WIRECHECK_TEST_CASES"
	seedVariable  = "WIRECHECK_TEST_SEED"
	levelVariable = "WIRECHECK_TEST_LEVEL" // only this level
)

const casesPerDatabase = 25

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// maker makes small cases with much contention.
type maker struct {
	*rand.Rand
	mysql bool
	key   string // what k is declared as
	two   bool
}

func (m *maker) pick(list ...string) string { return list[m.IntN(len(list))] }

func (m *maker) value() string { return m.pick("0", "1", "2", "3", "4", "5", "NULL", "7") }

func (m *maker) key1() string { return strconv.Itoa(m.IntN(7)) }

func (m *maker) condition() string {
	if m.two && m.IntN(8) == 0 {
		return m.pick("a < (SELECT MAX(x) FROM u)", "k IN (SELECT x FROM u)", "a > (SELECT COUNT(x) FROM u)")
	}
	switch m.IntN(9) {
	case 0:
		return "1 = 1"
	case 1:
		return "k = " + m.key1()
	case 2:
		return "k > " + m.key1()
	case 3:
		return "k < " + m.key1()
	case 4:
		return "a = " + m.value()
	case 5:
		return "a IS NULL"
	case 6:
		return "a <> " + m.value()
	case 7:
		return "b > " + m.key1() + " OR k = " + m.key1()
	}
	return "a < b"
}

func (m *maker) statement() string {
	if m.two && m.IntN(6) == 0 {
		return m.pick("UPDATE u SET x = x + 1", "INSERT INTO u VALUES ("+m.key1()+")", "DELETE FROM u WHERE x < "+m.key1(), "UPDATE u SET x = "+m.key1()+" WHERE x = "+m.key1())
	}
	switch m.IntN(14) {
	case 0, 1:
		return "DELETE FROM t WHERE " + m.condition()
	case 2, 3:
		return fmt.Sprintf("INSERT INTO t VALUES (%s, %s, %s)", m.key1(), m.value(), m.value())
	case 4:
		return fmt.Sprintf("INSERT INTO t VALUES (%s, %s, %s), (%s, %s, %s)", m.key1(), m.value(), m.value(), m.key1(), m.value(), m.value())
	case 5:
		if m.mysql {
			return fmt.Sprintf("REPLACE INTO t VALUES (%s, %s, %s)", m.key1(), m.value(), m.value())
		}
		if m.key != "INT" {
			return fmt.Sprintf("INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (k) DO UPDATE SET a = %s", m.key1(), m.value(), m.value(), m.value())
		}
		return "DELETE FROM t WHERE k = " + m.key1()
	case 6:
		if m.two {
			return "INSERT INTO u SELECT k FROM t WHERE " + m.pick("k = ", "k > ", "a = ") + m.key1()
		}
		return "UPDATE t SET k = k + 10 WHERE k = " + m.key1()
	case 7:
		return "UPDATE t SET k = k + " + m.pick("1", "3", "-3") + " WHERE k " + m.pick("=", ">") + " " + m.key1()
	case 8, 9:
		return "SELECT * FROM t WHERE " + m.condition()
	case 10:
		return "UPDATE t SET a = a + 1, b = " + m.value() + " WHERE " + m.condition()
	}
	return "UPDATE t SET " + m.pick("a", "b") + " = " + m.value() + " WHERE " + m.condition()
}

// setup makes a database.
func (m *maker) setup() string {
	m.key = m.pick("INT", "INT PRIMARY KEY", "INT PRIMARY KEY", "INT UNIQUE")
	m.two = m.IntN(3) == 0
	var b strings.Builder
	fmt.Fprintf(&b, "setup { CREATE TABLE t (k %s, a INT, b INT) }\n", m.key)
	if m.IntN(3) == 0 {
		b.WriteString("setup { CREATE INDEX i ON t (a) }\n")
	}
	if m.two {
		b.WriteString("setup { CREATE TABLE u (x INT) }\nsetup { INSERT INTO u VALUES (1), (3), (4) }\n")
	}
	rows := []string{}
	for k := range 2 + m.IntN(4) {
		rows = append(rows, fmt.Sprintf("(%d, %s, %s)", k+1, m.value(), m.value()))
	}
	fmt.Fprintf(&b, "setup { INSERT INTO t VALUES %s }\n", strings.Join(rows, ", "))
	return b.String()
}

// sessions make a case: sessions with transactions, and an order of their statements.
func (m *maker) sessions() string {
	var b strings.Builder
	sessions := 2
	if m.IntN(3) == 0 {
		sessions = 3 + m.IntN(3)
	}
	var steps [][]string
	for s := range sessions {
		var list []string
		if m.IntN(8) > 0 {
			list = append(list, "BEGIN")
			for range 1 + m.IntN(4) {
				list = append(list, m.statement())
			}
			list = append(list, m.pick("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))
			if m.IntN(6) == 0 {
				list = append(list, m.statement())
			}
		} else {
			for range 1 + m.IntN(2) {
				list = append(list, m.statement())
			}
		}
		steps = append(steps, list)
		fmt.Fprintf(&b, "session s%d\n", s+1)
		for i, sql := range list {
			fmt.Fprintf(&b, "step s%d_%d { %s }\n", s+1, i+1, sql)
		}
	}
	b.WriteString("permutation")
	next := make([]int, sessions)
	for {
		var open []int
		for s := range steps {
			if next[s] < len(steps[s]) {
				open = append(open, s)
			}
		}
		if len(open) == 0 {
			break
		}
		s := open[m.IntN(len(open))]
		next[s]++
		fmt.Fprintf(&b, " s%d_%d", s+1, next[s])
	}
	return b.String() + "\n"
}

// TestRandom executes random cases on correct servers: there is no violation but the known bugs, and what is permitted has a cause.
func TestRandom(t *testing.T) {
	t.Parallel()
	random(t, 25, func(t *testing.T, s *site, seed int) func(i int) *scenario.Spec {
		return func(i int) *scenario.Spec {
			m := &maker{Rand: rand.New(rand.NewPCG(uint64(seed), 1<<32+uint64(i/casesPerDatabase))), mysql: s.engine.Name != "postgres"}
			text := m.setup()
			m.Rand = rand.New(rand.NewPCG(uint64(seed), uint64(i)))
			text += m.sessions()
			spec, err := scenario.Parse("random", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			return spec
		}
	})
}

// TestGenerated does the same with the generator's cases, which have everything that it can make.
func TestGenerated(t *testing.T) {
	t.Parallel()
	random(t, 10, func(t *testing.T, s *site, seed int) func(i int) *scenario.Spec {
		var g *generate.Generator
		var db *generate.Database
		return func(i int) *scenario.Spec {
			if i%casesPerDatabase == 0 {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
				var err error
				if g, err = generate.New(generate.Dialect(s.engine.Name), generate.Limits{Transactions: 2 + i/casesPerDatabase%2*3}, r.IntN); err != nil {
					t.Fatal(err)
				}
				db = g.Database()
			}
			return g.CaseOn(db).Spec
		}
	})
}

// random executes cases at every level.
func random(t *testing.T, few int, source func(t *testing.T, s *site, seed int) func(i int) *scenario.Spec) {
	cases, seed := number(t, casesVariable, few), number(t, seedVariable, 1)
	for _, name := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, name)
			for _, level := range s.engine.Levels {
				if only := os.Getenv(levelVariable); only != "" && only != level.History {
					continue
				}
				b := s.open(t, level)
				next := source(t, s, seed)
				count := map[string]int{}
				var ran, judged time.Duration
				for i := range cases {
					spec := next(i)
					began := time.Now()
					got, err := b.run(t.Context(), spec, spec.Permutations[0])
					if err != nil {
						t.Fatalf("seed %d, case %d: %v\n%v", seed, i, err, spec.Setup)
					}
					between := time.Now()
					ran += between.Sub(began)
					v, err := b.check(t.Context(), got)
					if err != nil {
						t.Fatalf("seed %d, case %d: %v\n%s", seed, i, err, story(got, v))
					}
					judged += time.Since(between)
					for _, f := range v.Findings {
						count[string(f.Kind)+" "+f.Difference.Cause]++
						if f.Kind != oracle.KindPermitted && f.Difference.Cause == "" {
							t.Errorf("seed %d, case %d:\n%s", seed, i, story(got, v))
							break
						}
					}
					if v.Unknown != "" {
						count["unknown: "+strings.TrimSpace(v.Unknown[strings.IndexByte(v.Unknown, 58)+1:])]++
						if os.Getenv("STORY") != "" {
							t.Logf("seed %d, case %d:\n%s", seed, i, story(got, v))
						}
					}
				}
				var words []string
				for k, n := range count {
					words = append(words, fmt.Sprintf("%d %s", n, k))
				}
				slices.Sort(words)
				t.Logf("%-17s %d cases, %.0f/s (executing %v, judging %v each): %s", level.History, cases, float64(cases)/(ran+judged).Seconds(),
					(ran / time.Duration(cases)).Round(time.Microsecond), (judged / time.Duration(cases)).Round(time.Microsecond), strings.Join(words, ", "))
			}
		})
	}
}
