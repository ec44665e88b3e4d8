package hunt

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnknown: the text says of each oracle in what share of its cases it could not decide, and why, the most frequent reason first. An oracle that
// decided all of its cases is not named.
func TestUnknown(t *testing.T) {
	s := State{}
	s.complete()
	*s.Scores.of("read committed", "troc") = score{Cases: 150, Unknown: 3}
	*s.Scores.of("serializable", "troc") = score{Cases: 50, Unknown: 18}
	*s.Scores.of("serializable", "wss") = score{Cases: 50}
	s.Reasons["troc: it waited"] = 1
	for i := range 20 {
		s.Reasons[fmt.Sprintf("troc: reason %02d", i)] = 1
	}
	s.Reasons["troc: triggers"] = 2
	s.Reasons["trochaic: no oracle's name"] = 7
	var b strings.Builder
	if err := s.print(&b); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.String(), "unknown, ")
	if want := "troc: 21 of 200 cases (10.5%)\n  2: triggers\n  1: it waited\n  1: reason 00\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := "  1: reason 12\n  7 more reasons, in state.json\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q at the end", got, want)
	}
	if strings.Contains(got, "wss") || strings.Contains(got, "trochaic") {
		t.Errorf("got %q", got)
	}
}
