package filing

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/product"
)

// Test gives a file as the product's own tests have it, and its name; empty: the product has no such form, or the case cannot be written in it.
func (c *Case) Test() (name, text string) {
	acts := c.acts()
	for i := range acts {
		if acts[i].raw { // one database is what these tests have
			acts = acts[:i]
			break
		}
	}
	switch c.Engine.Tests {
	case product.IsolationTester:
		return "case.isolation.spec", c.isolationSpec(acts)
	case product.MySQLTest:
		return "case.test", c.mysqltest(acts)
	case product.TestKit:
		return "case_test.go", c.testkit(acts)
	}
	return "", ""
}

// isolationSpec is a file for src/test/isolation/specs of PostgreSQL. The tester has no way to write a } in SQL.
func (c *Case) isolationSpec(acts []act) string {
	var b strings.Builder
	block := func(head, sql string) { fmt.Fprintf(&b, "%s { %s }\n", head, ended(sql)) }
	for _, sql := range c.Schedule.Setup {
		block("setup", sql)
	}
	fmt.Fprintf(&b, "teardown { DROP SCHEMA public CASCADE; CREATE SCHEMA public; }\n")
	var order []string
	names := map[int]string{}
	for i, a := range acts {
		if !a.resumed {
			names[i] = fmt.Sprintf("s%d_%d", a.session+1, i+1)
			order = append(order, names[i])
		}
	}
	for _, n := range c.sessions(acts) {
		fmt.Fprintf(&b, "\nsession s%d\n", n+1)
		if set := c.settings(n); len(set) > 0 {
			block("setup", strings.Join(set, "; "))
		}
		for i, a := range acts {
			if a.session != n {
				continue
			}
			if a.note != "" {
				fmt.Fprintf(&b, "# %s\n", a.note)
			}
			if !a.resumed {
				block("step "+names[i], a.sql)
			}
		}
	}
	fmt.Fprintf(&b, "\npermutation %s\n", strings.Join(order, " "))
	if strings.Count(b.String(), "}") != 1+len(c.Schedule.Setup)+len(order)+c.setups(acts) {
		return ""
	}
	return b.String()
}

// setups counts the sessions with settings.
func (c *Case) setups(acts []act) (n int) {
	for _, session := range c.sessions(acts) {
		if len(c.settings(session)) > 0 {
			n++
		}
	}
	return n
}

// mysqltest is a file for mysql-test/t.
func (c *Case) mysqltest(acts []act) string {
	var b strings.Builder
	fmt.Fprintln(&b, "--source include/have_innodb.inc")
	fmt.Fprintln(&b, "--source include/count_sessions.inc")
	for _, sql := range c.Settings.create(Database) {
		fmt.Fprintf(&b, "--disable_warnings\n%s;\n--enable_warnings\n", sql)
	}
	statement := func(word, sql string) {
		if compound(sql) {
			fmt.Fprintf(&b, "--delimiter //\n%s//\n--delimiter ;\n", strings.TrimRight(sql, "; \t\r\n"))
			return
		}
		fmt.Fprintln(&b, word+ended(sql))
	}
	statement("", "USE "+Database)
	for _, sql := range append(c.Settings.session(), c.Schedule.Setup...) {
		statement("", sql)
	}
	for _, n := range c.sessions(acts) {
		fmt.Fprintf(&b, "\n--connect (s%d,localhost,root,,%s)\n", n+1, Database)
		for _, sql := range append(c.Settings.session(), c.settings(n)...) {
			statement("", sql)
		}
	}
	now := -1
	for _, a := range acts {
		if a.session != now {
			fmt.Fprintf(&b, "\n--connection s%d\n", a.session+1)
		}
		now = a.session
		if a.note != "" {
			fmt.Fprintf(&b, "--echo # %s\n", strings.ReplaceAll(a.note, "$", "\\$"))
		}
		if a.refused != "" && !a.waits {
			fmt.Fprintf(&b, "--error %s\n", a.refused)
		}
		switch {
		case a.waits:
			statement("send ", a.sql)
			fmt.Fprint(&b, "\n--connection default\nlet $wait_condition= SELECT COUNT(*) > 0 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT';\n--source include/wait_condition.inc\n")
			now = -1
		case a.resumed:
			fmt.Fprintln(&b, "--reap")
		default:
			statement("", a.sql)
		}
	}
	fmt.Fprintln(&b, "\n--connection default")
	for _, n := range c.sessions(acts) {
		fmt.Fprintf(&b, "--disconnect s%d\n", n+1)
	}
	fmt.Fprintf(&b, "DROP DATABASE %s;\n--source include/wait_until_count_sessions.inc\n", Database)
	return b.String()
}

// testkit is the outline of a test for pkg/executor or tests/realtikvtest of TiDB.
func (c *Case) testkit(acts []act) string {
	var b strings.Builder
	b.WriteString("package executor_test\n\nimport (\n\t\"testing\"\n\n\t\"github.com/pingcap/tidb/pkg/testkit\"\n)\n\nfunc TestWirecheckCase(t *testing.T) {\n\tstore := testkit.CreateMockStore(t)\n")
	kit := func(n int) string { return fmt.Sprintf("tk%d", n+1) }
	for i, n := range c.sessions(acts) {
		fmt.Fprintf(&b, "\t%s := testkit.NewTestKit(t, store)\n\t%[1]s.MustExec(\"use test\")\n", kit(n))
		if i == 0 {
			for _, sql := range c.Schedule.Setup {
				fmt.Fprintf(&b, "\t%s.MustExec(%q)\n", kit(n), sql)
			}
		}
		for _, sql := range append(c.Settings.session(), c.settings(n)...) {
			fmt.Fprintf(&b, "\t%s.MustExec(%q)\n", kit(n), sql)
		}
	}
	for _, n := range c.sessions(acts) {
		if slices.ContainsFunc(acts, func(a act) bool { return a.waits && a.session == n }) {
			fmt.Fprintf(&b, "\tdone%d := make(chan error, 1)\n", n+1)
		}
	}
	for _, a := range acts {
		switch {
		case a.waits:
			fmt.Fprintf(&b, "\tgo func() { done%[1]d <- %s.ExecToErr(%q) }() // %s: the next statement of the others follows when it does\n", a.session+1, kit(a.session), a.sql, waitNote(a, kit))
		case a.resumed && a.refused != "":
			fmt.Fprintf(&b, "\trequire.ErrorContains(t, <-done%d, %q)\n", a.session+1, "["+a.refused+"]")
		case a.resumed:
			fmt.Fprintf(&b, "\trequire.NoError(t, <-done%d)\n", a.session+1)
		case a.refused != "":
			fmt.Fprintf(&b, "\t%s.MustGetErrCode(%q, %s)\n", kit(a.session), a.sql, a.refused)
		case reads(a.sql):
			fmt.Fprintf(&b, "\t%s.MustQuery(%q)\n", kit(a.session), a.sql)
		default:
			fmt.Fprintf(&b, "\t%s.MustExec(%q)\n", kit(a.session), a.sql)
		}
		if a.note != "" {
			fmt.Fprintf(&b, "\t// %s\n", a.note)
		}
	}
	b.WriteString("}\n")
	text := b.String()
	if strings.Contains(text, "require.") {
		text = strings.Replace(text, "/testkit\"\n", "/testkit\"\n\t\"github.com/stretchr/testify/require\"\n", 1)
	}
	return text
}

// reads reports whether a statement is a query.
func reads(sql string) bool {
	word := strings.ToUpper(strings.TrimLeft(sql, " (\t\r\n"))
	return strings.HasPrefix(word, "SELECT") || strings.HasPrefix(word, "WITH") || strings.HasPrefix(word, "TABLE")
}
