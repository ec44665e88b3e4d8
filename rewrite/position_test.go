package rewrite_test

import (
	"strings"
	"testing"

	"wirecheck/rewrite"
)

// TestMapPositionCopied: a position in a copy of the client's text is that of the client's text; one in a name that both texts have is where the text was added.
func TestMapPositionCopied(t *testing.T) {
	const client = "UPDATE ä x SET b = (SELECT max(a) FROM y WHERE y.a = x.b) WHERE x.a = 1"
	edits := []rewrite.Edit{{At: len(client), Add: ` RETURNING x.ctid, (SELECT 1 FROM (SELECT y.ctid FROM y WHERE y.a = x.b) q)`}}
	sent := rewrite.Apply(client, edits)
	for _, c := range []struct {
		before, at string
		want       int
	}{
		{"RETURNING", "x.ctid", len([]rune(client)) + 1},
		{"RETURNING", "y.ctid", len([]rune(client)) + 1},
		{"RETURNING", "x.b", len([]rune(client[:strings.Index(client, "x.b")])) + 1},
		{"UPDATE", "x.b", len([]rune(client[:strings.Index(client, "x.b")])) + 1},
	} {
		from := strings.Index(sent, c.before)
		pos := len([]rune(sent[:from+strings.Index(sent[from:], c.at)])) + 1
		if got := rewrite.MapPosition(client, edits, pos); got != c.want {
			t.Errorf("%s behind %s: %d, want %d", c.at, c.before, got, c.want)
		}
	}
}
