package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOutcomes reads the output of the runners.
func TestOutcomes(t *testing.T) {
	want := outcomes{"p A": passed, "p B/x": failed, "p C": skipped}
	got, err := goOutcomes([]byte(`{"Action":"run","Package":"p","Test":"A"}
{"Action":"pass","Package":"p","Test":"A"}
a line of the test's own
{"Action":"fail","Package":"p","Test":"B/x"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"fail","Package":"p"}
`))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("go: want (-), got (+), %v:\n%s", err, diff)
	}
	got, err = junitOutcomes([]byte(`<testsuites><testsuite><testcase classname="p" name="A"/><testcase classname="p" name="B/x"><failure>no</failure></testcase>` +
		`<testcase classname="p" name="C"><skipped/></testcase></testsuite></testsuites>`))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("pytest: want (-), got (+), %v:\n%s", err, diff)
	}
	got, err = unittestOutcomes([]byte("Creating test database ... done\ntest_a (basic.T) ... ok\ntest_b (basic.T)\nIt has a description ... FAIL\ntest_c (basic.T) ... skipped 'no'\n" +
		"test_d (basic.T) ... expected failure\n======\nFAIL: test_b (basic.T)\n"))
	want = outcomes{"basic.T test_a": passed, "basic.T test_b": failed, "basic.T test_c": skipped, "basic.T test_d": passed}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("unittest: want (-), got (+), %v:\n%s", err, diff)
	}
	got = outcomes{}
	tapOutcomes(got, "a.t", []byte("1..6\nok 1 - it connects\nnot ok 2 - it answers\n#   Failed test\n    ok 1 - a part\nok 3 # skip no server\nnot ok 4 - soon # TODO later\nok 5\n"))
	want = outcomes{"a.t 1": passed, "a.t 2": failed, "a.t 3": skipped, "a.t 4": passed, "a.t 5": passed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("TAP: want (-), got (+):\n%s", diff)
	}
	got, err = phpOutcomes([]byte("TEST 1/4 [ext/x/tests/a.phpt]\rPASS It [works] [ext/x/tests/a.phpt] \nTEST 2/4 [ext/x/tests/b.phpt]TEST 2/4 [ext/x/tests/b.phpt]\rFAIL It [ext/x/tests/b.phpt] \n" +
		"TEST 3/4 [ext/x/tests/c.phpt]SKIP It [ext/x/tests/c.phpt] reason: no\nXFAIL It [ext/x/tests/d.phpt]   XFAIL REASON: soon\nFAIL the summary\n"))
	want = outcomes{"ext/x/tests/a.phpt": passed, "ext/x/tests/b.phpt": failed, "ext/x/tests/c.phpt": skipped, "ext/x/tests/d.phpt": passed}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("PHP: want (-), got (+), %v:\n%s", err, diff)
	}
	for name, read := range map[string]func([]byte) (outcomes, error){"go": goOutcomes, "unittest": unittestOutcomes, "PHP": phpOutcomes} {
		if _, err := read([]byte("command not found\n")); err == nil {
			t.Errorf("%s: that no test ran is no error", name)
		}
	}
}

// TestDifferent finds the tests whose outcome depends on the mode. One that did not run in a mode is one of them.
func TestDifferent(t *testing.T) {
	got := different(map[string]outcomes{
		"direct":  {"same": passed, "fails": failed, "gone": passed, "worse": passed},
		"pass":    {"same": passed, "fails": failed, "gone": passed, "worse": passed},
		"observe": {"same": passed, "fails": failed, "worse": failed, "new": skipped},
	})
	if diff := cmp.Diff([]string{"gone", "new", "worse"}, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if got, want := goPattern([]string{"p TestA/x", "p TestB"}), "^(TestA|TestB)$"; got != want {
		t.Errorf("pattern %s, want %s", got, want)
	}
}
