package toy

import (
	"fmt"
	"strings"
	"testing"
)

// play submits "1 lock a" lines and tells what comes of each: the answers, in the sessions' order, and who waits.
func play(t *testing.T, policy Policy, lines string) string {
	t.Helper()
	sv := NewServer(4, policy)
	var out []string
	for line := range strings.SplitSeq(lines, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		s := int(line[0] - '1')
		switch line[2:] {
		case "disconnect":
			sv.Disconnect(s)
		case "time out":
			sv.TimeOut(s)
		default:
			steps, err := Parse(line[2:])
			if err != nil {
				t.Fatal(err)
			}
			if got := steps[0].String(); got != line[2:] {
				t.Errorf("printed %q, want %q", got, line[2:])
			}
			sv.Submit(s, steps[0])
		}
		for sv.Tick() {
		}
		var said []string
		for s := range 4 {
			if victim, ok := sv.Answer(s); ok {
				said = append(said, fmt.Sprintf("%d%s", s+1, map[bool]string{true: "!"}[victim]))
			} else if whom := sv.WaitsFor(s); whom != nil {
				said = append(said, fmt.Sprintf("%d%v", s+1, whom))
			}
		}
		out = append(out, strings.Join(said, " "))
	}
	return strings.Join(out, "\n")
}

func TestServer(t *testing.T) {
	for _, c := range []struct {
		name, lines, want string
		policy            Policy
	}{
		{name: "free rows", lines: "1 lock a\n2 lock b\n1 lock a", want: "1\n2\n1"},
		{name: "queue", lines: "1 lock a\n2 lock a\n3 auto a\n1 commit\n2 commit", want: "1\n2[0]\n2[0] 3[0 1]\n1 2 3[1]\n2 3"},
		{name: "autocommit lets go", lines: "1 auto a b\n2 lock a b", want: "1\n2"},
		{name: "swap", lines: "1 lock a\n2 lock b\n3 lock a\n1 swap a b", want: "1\n2\n3[0]\n1[1] 3"},
		{name: "closer dies", lines: "1 lock a\n2 lock b\n1 lock b\n2 lock a", want: "1\n2\n1[1]\n1 2!"},
		{name: "first waiter dies", policy: First, lines: "1 lock a\n2 lock b\n1 lock b\n2 lock a", want: "1\n2\n1[1]\n1! 2"},
		{name: "no circle, nobody dies", policy: First, lines: "1 lock a\n2 lock b\n2 lock a\n1 lock c", want: "1\n2\n2[0]\n1 2[0]"},
		{name: "disconnect", lines: "1 lock a\n2 lock a\n3 lock a\n2 disconnect\n1 disconnect", want: "1\n2[0]\n2[0] 3[0 1]\n3[0]\n3"},
		{name: "time out", lines: "1 lock a\n2 lock b a\n3 lock a\n4 lock b\n2 time out\n1 commit\n2 commit", want: "1\n2[0]\n2[0] 3[0 1]\n2[0] 3[0 1] 4[1]\n2 3[0] 4[1]\n1 3 4[1]\n2 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := play(t, c.policy, c.lines); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s\ninput:\n%s", got, c.want, c.lines)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"look a", "lock ab", "lock A"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) gave no error", text)
		}
	}
}
