package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const small = "session s step a {} step b {}\nsession u step c {}\n"

func TestDirectiveProblems(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"no colon", "expect", `found "expect", expected KEY: VALUE; keys are engine, level, expect, verdict, observe, outcome, oracle, seed, permutations, final, raw`},
		{"unknown key", "expects: none", `unknown key "expects"; keys are engine, level, expect, verdict, observe, outcome, oracle, seed, permutations, final, raw`},
		{"no key", ": x", `found no key before ": x"; keys are engine, level, expect, verdict, observe, outcome, oracle, seed, permutations, final, raw`},
		{"engine", "engine: postgres, oracle", `engine: found the engine "oracle", expected one of: postgres, mariadb, mysql, tidb, sqlite`},
		{"level", "level: rr", `level: found the level "rr", expected one of: read uncommitted, read committed, repeatable read, snapshot, serializable`},
		{"comma", "engine: postgres,", "engine: found an empty place in the list; names are separated by one comma"},
		{"anomaly", "expect: lost updates", `expect: found the anomaly "lost updates", expected one of: none, dirty write`},
		{"none and", "expect: none, G0", "expect: found none beside others; none stands alone"},
		{"verdict", "verdict: none", `verdict: found "none", expected nothing, or ORACLE KIND CAUSE with one of the kinds violation, anomaly, permitted, unknown`},
		{"verdict of several", "verdict: troc violation; wss fine", `verdict: found "wss fine", expected nothing, or ORACLE KIND CAUSE`},
		{"bracket", "expect[mysql: none", "the [ is not closed; expected KEY[ENGINES: LEVELS]: VALUE"},
		{"selector", "expect[mysql repeatable read]: none", `found "repeatable read" after the engine, expected the beginning of a version, such as: mysql 8`},
		{"empty selector", "expect[]: none", "found [], expected [ENGINES], [LEVELS] or [ENGINES: LEVELS]"},
		{"half selector", "expect[mysql:]: none", "found [mysql:], expected [ENGINES], [LEVELS] or [ENGINES: LEVELS]"},
		{"mixed", "expect[repeatable read, mysql]: none", `found the level "mysql", expected one of: read uncommitted`},
		{"no selector", "seed[mysql]: 1", "seed has no [...]: it tells the seed of random permutations"},
		{"after selector", "expect[mysql] none", `found "none", expected a colon and the value`},
		{"name", "expect x: none", `found "x" after expect, expected a colon or [`},
		{"no name", "outcome: ok(a)", `found "outcome ", expected one word as name: outcome NAME: ...`},
		{"seed", "seed: -1", `seed: found "-1", expected a whole number from 0 to 18446744073709551615`},
		{"permutations", "permutations: some", `permutations: permutations "some": expected listed, all, random:N or pct:N,D`},
		{"final", "final:", "final: found nothing, expected a statement"},
		{"condition", "outcome x: rows(a) is 1", `outcome: found "is", expected are, contain or lack after rows(...)`},
		{"step", "outcome x: ok(d)", "outcome x names the step d, which does not exist; the queries of final lines are final, or final1, final2, ..."},
		{"final without query", "outcome x: ok(final)", "outcome x names the step final, which does not exist"},
		{"outcome", "observe: x", `observe names the outcome "x", which no outcome line defines`},
	}
	for _, test := range tests {
		_, err := Parse("x.spec", []byte("\n  #wirecheck: "+test.line+"\n"+small))
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, "x.spec:2:3: #wirecheck: "+test.want) {
			t.Errorf("%s:\ngot  %s\nwant x.spec:2:3: #wirecheck: %s", test.name, got, test.want)
		}
	}
}

func TestDirectivePlaces(t *testing.T) {
	src := `#wirecheck: seed: 1
#wirecheck: seed: 2
` + small + `
#wirecheck: seed: 3
permutation a
permutation b #wirecheck: expect: none
`
	_, err := Parse("x.spec", []byte(src))
	want := `x.spec:2:1: #wirecheck: a second seed, the first is in line 1; remove one
x.spec:6:1: #wirecheck: seed tells the seed of random permutations for the whole file; put an empty line between it and the permutation
x.spec:8:15: a #wirecheck: comment after something else; it must stand on a line of its own`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestWhose(t *testing.T) {
	s := mustParse(t, small+`
#wirecheck: expect: G0

# of the permutation, with a comment between
#wirecheck: expect: G1a
# ...
permutation a
permutation b
#wirecheck: expect: G1b

permutation c
#wirecheck: expect: G1c
`)
	var got []string
	for _, d := range s.Directives {
		got = append(got, "file "+d.Value)
	}
	for _, p := range s.Permutations {
		for _, d := range p.Directives {
			got = append(got, p.String()+" "+d.Value)
		}
	}
	if diff := cmp.Diff([]string{"file G0", "file G1b", "file G1c", "a G1a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResolve(t *testing.T) {
	s := mustParse(t, `#wirecheck: engine: mysql, tidb, postgres
#wirecheck: level: repeatable read
#wirecheck: level: serializable
#wirecheck: oracle: isolation, wss
#wirecheck: seed: 18446744073709551615
#wirecheck: permutations: pct:10,3
#wirecheck: final: SELECT 1
#wirecheck: final: SELECT 2; -- [x]: y
#wirecheck: outcome bad: ok(a)
#wirecheck: outcome bad: ok(c)
#wirecheck: outcome good: rows(final2) are 1
#wirecheck: expect: none
#wirecheck: expect[mysql 8, tidb: repeatable read]: lost update, G-single
#wirecheck: expect[serializable]: none
#wirecheck: observe: not bad, good
#wirecheck: observe[tidb]: bad
#wirecheck: verdict: nothing
#wirecheck: verdict[mysql, tidb: repeatable read]: wss permitted missing gap locks;  txcheck unknown
`+small+`
permutation a b c

#wirecheck: engine: tidb
#wirecheck: expect[tidb]: wss-tx
#wirecheck: outcome bad: failed(b)
permutation b a c
`)
	own := s.Permutations[1]
	tests := []struct {
		perm    *Permutation
		target  Target
		fits    bool
		expect  []string
		observe string
	}{
		{nil, Target{"postgres", "15.3", "repeatable read"}, true, []string{}, "[{bad false} {good true}]"},
		{nil, Target{"mariadb", "10.11", "repeatable read"}, false, []string{}, "[{bad false} {good true}]"},
		{nil, Target{"mysql", "8.0.36", "repeatable read"}, true, []string{"lost update", "G-single"}, "[{bad false} {good true}]"},
		{nil, Target{"mysql", "80.1", "repeatable read"}, true, []string{}, "[{bad false} {good true}]"},
		{nil, Target{"mysql", "9.7", "read committed"}, false, []string{}, "[{bad false} {good true}]"},
		{nil, Target{"tidb", "v8.4.0", "serializable"}, true, []string{}, "[{bad true}]"},
		{own, Target{"tidb", "v8.4.0", "repeatable read"}, true, []string{"wss-tx"}, "[{bad true}]"},
		{own, Target{"mysql", "8", "repeatable read"}, false, []string{"lost update", "G-single"}, "[{bad false} {good true}]"},
	}
	for _, test := range tests {
		if got := s.For(test.perm, test.target); got != test.fits {
			t.Errorf("%v: For is %v", test.target, got)
		}
		got, ok := s.Expect(test.perm, test.target)
		if diff := cmp.Diff(test.expect, got); diff != "" || !ok {
			t.Errorf("%v: expect %v (-want +got):\n%s", test.target, ok, diff)
		}
		observe, ok := s.Observe(test.perm, test.target)
		if got := sprint(observe); got != test.observe || !ok {
			t.Errorf("%v: observe %s, want %s", test.target, got, test.observe)
		}
	}
	for want, target := range map[string]Target{
		"[]": {"postgres", "15.3", "repeatable read"}, `["wss permitted missing gap locks" "txcheck unknown"]`: {"mysql", "8", "repeatable read"},
	} {
		if verdict, ok := s.Verdict(own, target); fmt.Sprintf("%q", verdict) != want || !ok {
			t.Errorf("%v: verdict %q %v, want %s", target, verdict, ok, want)
		}
	}
	if seed, ok := s.Seed(); !ok || seed != 1<<64-1 {
		t.Errorf("seed %d %v", seed, ok)
	}
	if m, ok := s.Mode(); !ok || m != (Mode{KindPCT, 10, 3}) {
		t.Errorf("mode %v %v", m, ok)
	}
	if diff := cmp.Diff([][]string{{"isolation", "wss"}, {"SELECT 1", "SELECT 2; -- [x]: y"}, {"repeatable read", "serializable"}},
		[][]string{s.Oracles(), s.Finals(), s.Levels()}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var outcomes []string
	for _, p := range []*Permutation{nil, own} {
		for _, o := range s.Outcomes(p) {
			outcomes = append(outcomes, o.Name+": "+o.Condition.String())
		}
	}
	want := []string{"bad: ok(a) and ok(c)", "good: rows(final2) are 1", "bad: failed(b)", "good: rows(final2) are 1"}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if _, ok := mustParse(t, small).Verdict(nil, Target{}); ok {
		t.Errorf("a file without verdict lines says what the oracles say")
	}
	if _, ok := mustParse(t, small).Expect(nil, Target{}); ok {
		t.Errorf("a file without expect lines says what to expect")
	}
}
