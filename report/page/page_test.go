package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
)

// shop judges the history that the other formats are tested with.
func shop(t testing.TB) report.Result {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", "shop.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events, err := history.ParseText(f)
	if err != nil {
		t.Fatal(err)
	}
	c := isolation.New(isolation.Options{})
	for i := range events {
		if e := &events[i]; e.Kind == history.EventSession {
			e.User, e.Client, e.Database = "ann", "shop", "shop"
		}
		c.Add(&events[i])
	}
	return report.Result{Source: "shop.jsonl", Findings: c.Summary(), Coverage: c.Coverage()}
}

// ring is a finding of n transactions, each of which read what the next one wrote.
func ring(n int, sql string) oracle.Finding {
	f := oracle.Finding{ID: "WC-00cafe", Oracle: "isolation", Kind: oracle.KindAnomaly, Class: "G2-item", Tables: []string{"public.t"}, Level: "read committed", PreventedBy: "serializable"}
	for i := range n {
		at := uint64(10 * i)
		f.Transactions = append(f.Transactions, oracle.Transaction{
			Label: fmt.Sprintf("T%d", i+1), ID: uint64(i + 1), Session: uint64(i + 1), Engine: "postgres", Level: "read committed", Outcome: history.OutcomeCommitted, From: at + 1, To: at + 2000,
			Statements: []oracle.Statement{{N: 1, SQL: sql, Verb: "select", From: at + 2, To: at + 3}, {N: 2, SQL: "UPDATE t SET a = 1 WHERE id = 1", Verb: "update", From: at + 1000, To: at + 1025}},
		})
		f.Edges = append(f.Edges, oracle.Edge{
			From: i, To: (i + 1) % n, Kind: oracle.EdgeRW, Row: history.Row{Table: "public.t", Key: fmt.Sprint(i)}, FromVersion: "a", ToVersion: "b", FromStatement: 1, ToStatement: 2, Text: "because",
		})
	}
	return f
}

func written(t testing.TB, d Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPage: a page holds what its reader needs, and the same findings give the same bytes.
func TestPage(t *testing.T) {
	r := shop(t)
	d := Of(r, func(f *oracle.Finding) []string { return []string{"wirecheck explain " + f.ID + " shop.jsonl"} })
	d.Known = func(f *oracle.Finding) string { return "ignore:\n  - id: " + f.ID }
	text := written(t, d)
	if again := written(t, d); again != text {
		t.Error("the same findings gave another page")
	}
	for _, want := range []string{
		"<title>shop.jsonl · wirecheck</title>", "found: ", "coverage: ", "Lost update", "Bug of the application", "Bug of the server", `<li class="allows ran"><b>READ COMMITTED</b>`,
		`<li class="prevents"><b>REPEATABLE READ</b>`, "UPDATE stock SET n = n + ? WHERE id = 1", "wirecheck explain ", "ignore:\n  - id: ", "ROLLBACK", "COMMIT", `aria-label="arrow 1, T`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("two parts have the id %q", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if !ids[m[1]] {
			t.Errorf("a link leads to %q, which is not there", m[1])
		}
	}
}

// TestSelfContained: nothing of a page comes from elsewhere, and nothing runs that its policy does not name.
func TestSelfContained(t *testing.T) {
	text := written(t, Of(shop(t), nil))
	for _, m := range regexp.MustCompile(`(?i)(?:\s(?:src|href|action)=|url\()["']?([^"') >]+)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "#") {
			t.Errorf("the page refers to %q", m[1])
		}
	}
	if m := regexp.MustCompile(`(?i)<[a-z][^>]*\s(?:style|on[a-z]+)=`).FindString(text); m != "" {
		t.Errorf("a style or a handler in a tag, which the policy forbids: %s", m)
	}
	if n := strings.Count(text, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
}

// TestHostile: what SQL, names, keys and tags say is text, in the page and in the picture.
func TestHostile(t *testing.T) {
	const bad = "</code></pre></svg><script>alert(1)</script><img src=x onerror=alert(1)>\"'`{{.}}\x1b[2J\u202e\x00"
	f := ring(2, bad)
	f.ID, f.Tables, f.Class = "WC-00cafe", []string{bad}, "G2-item"
	f.Transactions[0].Client, f.Transactions[0].User, f.Transactions[0].Tags, f.Transactions[0].Level = bad, bad, []string{bad}, bad
	f.Transactions[0].Statements[0].Tags = []string{"code.filepath=" + bad}
	f.Edges[0].Row, f.Edges[0].Name, f.Edges[0].Condition, f.Edges[0].FromVersion, f.Edges[0].Text = history.Row{Table: bad, Key: bad}, bad, bad, bad, bad
	f.Remedies = []oracle.Remedy{{Text: bad, SQL: bad, Cost: bad}}
	value := bad
	other := oracle.Finding{ID: "WC-00beef", Kind: oracle.KindViolation, Class: "troc", Name: bad, Source: bad, Difference: &oracle.Difference{
		Rule: bad, Step: bad, SQL: bad, Reason: bad, Expected: oracle.Side{Text: bad, Columns: []string{bad}, Rows: [][]*string{{&value, nil}}}, Reference: []string{bad},
	}}
	clean := strings.Count(written(t, Document{}), "<script")
	d := Document{Title: bad, Notes: []string{bad, bad}, Text: bad, Known: func(*oracle.Finding) string { return bad }, Items: []Item{
		{Finding: f, Again: []string{bad}, Where: []string{bad}, Scenario: bad}, {Finding: other},
	}}
	text := written(t, d)
	var picture bytes.Buffer
	if err := Picture(&picture, f); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"page": text, "picture": picture.String()} {
		if i := strings.IndexAny(text, "\x1b\x00\u202e"); i >= 0 {
			t.Errorf("%s: a character that cannot be printed: %q", name, text[max(0, i-40):i+1])
		}
		if strings.Contains(text, "<img") || strings.Count(text, "<script") > clean {
			t.Errorf("%s: a text became a tag", name)
		}
	}
	wellFormed(t, picture.Bytes())
}

// wellFormed fails the test if a picture is no XML.
func wellFormed(t *testing.T, picture []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

// TestLong: statements of 100 kB, 40 transactions and 500 findings make a page that is not too large, in time.
func TestLong(t *testing.T) {
	if text := written(t, Document{Items: []Item{{Finding: ring(40, "SELECT '"+strings.Repeat("long ", 20_000)+"' FROM t WHERE id = 1")}}}); len(text) > 1<<20 {
		t.Errorf("40 transactions with statements of 100 kB: a page of %d bytes", len(text))
	} else if !strings.Contains(text, "94029 characters left out") {
		t.Error("the page does not say what it leaves out")
	}
	var d Document
	for i := range 500 {
		f := ring(2+i%3, "SELECT a FROM t WHERE id = 1")
		f.ID = fmt.Sprintf("WC-%06x", i)
		d.Items = append(d.Items, Item{Finding: f})
	}
	begin := time.Now()
	text := written(t, d)
	took := time.Since(begin)
	if n := strings.Count(text, "<article"); n != 500 || len(text) > 12<<20 {
		t.Errorf("500 findings: %d on the page of %d bytes", n, len(text))
	}
	t.Logf("500 findings: %d bytes in %v", len(text), took)
}

// TestMerged: what was found in several places is shown once, with the places; another level is another finding with a name of its own on the page.
func TestMerged(t *testing.T) {
	f := ring(2, "SELECT 1")
	other := ring(2, "SELECT 1")
	other.Level = "repeatable read"
	text := written(t, Document{Items: []Item{{Finding: f, Where: []string{"permutation 1"}}, {Finding: f, Where: []string{"permutation 5"}}, {Finding: other, Where: []string{"permutation 6"}}}})
	if n := strings.Count(text, "<article"); n != 2 || !strings.Contains(text, "permutation 5") || !strings.Contains(text, `id="WC-00cafe-2"`) {
		t.Errorf("%d findings on the page", n)
	}
}

// TestPicture: the picture alone is well-formed whatever the finding has, and says what it shows.
func TestPicture(t *testing.T) {
	r := shop(t)
	unseen := ring(3, "SELECT 1")
	unseen.Edges[0].FromStatement = 0
	unseen.Transactions[1].Implicit, unseen.Transactions[1].From, unseen.Transactions[1].To = true, 0, 0
	session := ring(2, "SELECT 1")
	session.Edges[1].Kind = oracle.EdgeSO
	for _, f := range append(r.Findings, unseen, session, ring(1, "SELECT 1"), ring(40, "SELECT 1"), oracle.Finding{ID: "WC-000000", Class: "crash"}) {
		var b bytes.Buffer
		if err := Picture(&b, f); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.Bytes())
		if !strings.Contains(b.String(), f.ID) {
			t.Errorf("the picture of %s does not name it", f.ID)
		}
		for _, m := range regexp.MustCompile(`(?:x|y|width|height|cx|cy)="(-?\d+)"`).FindAllStringSubmatch(b.String(), -1) {
			if strings.HasPrefix(m[1], "-") {
				t.Errorf("%s: a place outside of the picture: %s", f.ID, m[0])
			}
		}
	}
}

// TestAnswered: a statement during which others did something shows where it was answered; one that was answered at once does not.
func TestAnswered(t *testing.T) {
	f := ring(2, "SELECT 1")
	f.Transactions[0].Statements[1].To = 1500 // after the other one's
	w := report.Tell(&f)
	d := draw(&f, &w, "x")
	var pending []string
	for _, b := range d.Boxes {
		if b.Answered > b.Y+b.H {
			pending = append(pending, b.ID)
		}
	}
	if fmt.Sprint(pending) != "[x-1-2]" {
		t.Errorf("pending: %v", pending)
	}
}
