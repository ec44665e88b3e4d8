package report

import (
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

// findings judges a history in text form. Each session has its own user, named by users in order.
func findings(t *testing.T, text string, users ...string) []oracle.Finding {
	t.Helper()
	events, err := history.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := isolation.New(isolation.Options{Possible: true})
	for i := range events {
		if e := &events[i]; e.Kind == history.EventSession && len(users) > 0 {
			e.User, users = users[0], users[1:]
		}
		c.Add(&events[i])
	}
	return c.Summary()
}

// TestRows: two that changed different columns of a row could have run one after the other. A level that protects rows lets one of them fail.
func TestRows(t *testing.T) {
	const text = `s1 session postgres "15.4"
s2 session postgres "15.4"
s1 t1 begin "repeatable read"
s2 t2 begin "repeatable read"
t1 r t.7@0 -- SELECT a FROM t WHERE id = 7
t2 r t.7@0 -- SELECT a FROM t WHERE id = 7
t1 w t.7 0>1 -- UPDATE t SET a = 1 WHERE id = 7
t1 commit
t2 w t.7 1>2 -- UPDATE t SET b = 2 WHERE id = 7
t2 commit
`
	const rows = "By the columns that changed, they could have run one after the other"
	found := findings(t, text)
	if len(found) != 1 || !found[0].Rows || found[0].Kind != oracle.KindViolation {
		t.Fatalf("found %+v", found)
	}
	if w := Warning(found[0], Reader{Session: 2, Others: true}); !strings.Contains(w.Message, "session 1 and you changed one another's rows at the same time") && !strings.Contains(w.Message, "you and session 1 changed one another's rows at the same time") || !strings.Contains(w.Detail, rows) {
		t.Errorf("%s\n%s", w.Message, w.Detail)
	}
	found = findings(t, strings.Replace(text, "SET b = 2", "SET a = 2", 1))
	if len(found) != 1 || found[0].Rows {
		t.Fatalf("found %+v", found)
	}
	if w := Warning(found[0], Reader{Session: 2, Others: true}); strings.Contains(w.Detail, rows) {
		t.Errorf("%s\n%s", w.Message, w.Detail)
	}
}

// TestFoundUnchanged: an UPDATE that found the value there already read nothing and overwrote nothing; the remedies are made of it.
func TestFoundUnchanged(t *testing.T) {
	const text = `s1 session mariadb "10.11.6-MariaDB"
s2 session mariadb "10.11.6-MariaDB"
s1 t1 begin "repeatable read"
s2 t2 begin "repeatable read"
t1 r shop.coupon.7@0 -- SELECT n FROM coupon WHERE id = 7
t2 r shop.coupon.7@0 -- SELECT n FROM coupon WHERE id = 7
t2 w shop.coupon.7 0>1 -- UPDATE coupon SET n = 4 WHERE id = 7
t2 commit
t1 match shop.coupon.7@1 -- UPDATE coupon SET n = 4 WHERE id = 7
t1 commit
`
	found := findings(t, text)
	if len(found) != 1 || found[0].Name != anomaly.LostUpdate {
		t.Fatalf("found %+v", found)
	}
	you := Reader{Session: found[0].Session, Others: true}
	w := Warning(found[0], you)
	for _, want := range []string{"your UPDATE of shop.coupon 7 overwrote a change by session 2 that it had not seen", "3. You set n = 4 in shop.coupon 7, as it was already:\n   UPDATE coupon SET n = 4"} {
		if !strings.Contains(w.Message+"\n"+w.Detail, want) {
			t.Errorf("%q is not in\n%s\n%s", want, w.Message, w.Detail)
		}
	}
	if want := "UPDATE coupon SET n = n + ? WHERE id = 7"; !strings.Contains(w.Hint, want) {
		t.Errorf("%q is not in\n%s", want, w.Hint)
	}
	// A near miss: what the second UPDATE changed, it overwrote.
	w = Warning(findings(t, strings.Replace(text, "match shop.coupon.7@1", "w shop.coupon.7 1>2", 1))[0], you)
	if !strings.Contains(w.Detail, "You set n = 4 in shop.coupon 7:") || strings.Contains(w.Detail, "already") {
		t.Errorf("%s\n%s", w.Message, w.Detail)
	}
}

// TestOthers: a session is not told what the server would not show it of other users' sessions.
func TestOthers(t *testing.T) {
	const text = `s1 session postgres "15.4"
s2 session postgres "15.4"
s3 session postgres "15.4"
s1 t1 begin "read committed"
s2 t2 begin "read committed"
s3 t3 begin "read committed"
t1 r public.coupon.7@0 -- SELECT n FROM coupon WHERE id = 7
t3 r public.coupon.77@0 -- SELECT n FROM coupon WHERE id = 77 AND owner = 'secret-a'
t2 w public.coupon.7 0>1 -- UPDATE coupon SET n = 4, note = 'secret-b' WHERE id = 7 /* user='secret-c' */
t2 w public.coupon.77 0>1 -- UPDATE coupon SET note = E'secret\\'d' WHERE id = 77
t2 commit
t3 w public.stock.8 0>1 -- UPDATE stock SET n = 3 WHERE name = 'secret-e'
t3 commit
t1 w public.coupon.7 1>2 -- UPDATE coupon SET n = 4 WHERE id = 7
t1 commit
`
	found := findings(t, text, "ann", "bob", "eve")
	if len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	all := func(w Wire) string { return w.Message + "\n" + w.Detail + "\n" + w.Hint }
	said := all(Warning(found[0], Reader{Session: 1, Engine: "postgres", User: "ann"}))
	for _, want := range []string{"your UPDATE of coupon 7 overwrote", "2. Session 2 changed coupon 7 and committed:\n   UPDATE coupon SET n = ?, note = ? WHERE id = ?\n", "UPDATE coupon SET n = 4 WHERE id = 7", "n = n + ?"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if strings.Contains(said, "secret") {
		t.Error(said)
	}
	for _, r := range []Reader{{Session: 1, Engine: "postgres", User: "bob"}, {Session: 1, Engine: "postgres", User: "ann", Others: true}, {Session: 2, Engine: "postgres", User: "bob"}} {
		if said := all(Warning(found[0], r)); !strings.Contains(said, "secret-b") {
			t.Errorf("%+v may see it:\n%s", r, said)
		}
	}
	// The other party sees its own statements, and not the first one's.
	said = all(Warning(found[0], Reader{Session: 2, Engine: "postgres", User: "bob"}))
	if !strings.Contains(said, "session 1's UPDATE of coupon 7 overwrote a change by you") || strings.Contains(said, "SET n = 4 WHERE id = 7") || !strings.Contains(said, "SET n = ? WHERE id = ?") {
		t.Error(said)
	}
	// Nobody is ann who has no name, and where a backslash may end a literal or not there is no text.
	found[0].Transactions[1].User = ""
	found[0].Transactions[1].Statements[0].SQL = `UPDATE coupon SET n = 'secret\', note = 'x'`
	if said := all(Warning(found[0], Reader{Session: 1})); strings.Contains(said, "secret") || !strings.Contains(said, "\n   UPDATE ...\n") {
		t.Error(said)
	}
	// The proof of a cycle in which the reader takes no part of an edge does not name the row.
	f := found[0]
	f.Edges = append(f.Edges, oracle.Edge{From: 1, To: 1, Kind: oracle.EdgeWW, Row: history.Row{Table: "t", Key: "secret-k"}, Name: "secret-n", Text: "secret-t", Condition: "a = 'secret'"})
	hidden := For(f, Reader{Session: 1, Engine: "postgres", User: "ann"})
	if e := hidden.Edges[len(hidden.Edges)-1]; strings.Contains(e.Text+e.Name+e.Row.Key+e.Condition, "secret") || e.RowText() != "a row of t" {
		t.Errorf("%+v", e)
	}
	if f.Edges[len(f.Edges)-1].Text != "secret-t" || f.Transactions[1].Statements[0].SQL == "UPDATE ..." {
		t.Error("the finding itself has changed")
	}
}

func TestAgain(t *testing.T) {
	f := findings(t, twoSessions+lostUpdates(1, []string{"SELECT n FROM x"}, []string{"UPDATE x SET n = 1"}))[0]
	for n, want := range map[int]string{2: "2nd", 3: "3rd", 11: "11th", 21: "21st", 112: "112th"} {
		f.Seen = n
		w := Again(f, Reader{Session: 1})
		if want := "wirecheck: " + f.ID + " again, " + want + " time: lost update: your UPDATE"; !strings.HasPrefix(w.Message, want) || w.Detail+w.Hint != "" || w.Finding != f.ID || w.SQLState != "01WC2" {
			t.Errorf("%+v, want %s", w, want)
		}
	}
}

// TestEveryone: a sentence names five sessions at most.
func TestEveryone(t *testing.T) {
	for n, want := range map[int]string{
		5: "you, session 2, session 3, session 4 and session 5",
		6: "you, session 2, session 3, session 4 and 2 other sessions",
	} {
		f := oracle.Finding{Transactions: make([]oracle.Transaction, n)}
		for i := range f.Transactions {
			f.Transactions[i].Session = uint64(i + 1)
		}
		if got := (&teller{f: &f, you: 1}).everyone(); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// TestRequestsOfOneSession: where a pool gave one session to both requests, the finding names the requests, and else the sessions.
func TestRequestsOfOneSession(t *testing.T) {
	const text = `s1 session postgres "15.4"
s2 session postgres "15.4"
s1 t1 begin "read committed"
t1 r public.coupon.7@0 request buy-1 -- SELECT n FROM coupon WHERE id = 7
t1 commit
s1 t2 begin "read committed"
t2 w public.coupon.7 0>1 request buy-2 set n=4 -- UPDATE coupon SET n = 4 WHERE id = 7
t2 commit
s1 t3 begin "read committed"
t3 w public.coupon.7 1>2 request buy-1 equal id=7 set n=4 derived n:public.coupon.7@0:1.1:plus:-1:5 -- UPDATE coupon SET n = 4 WHERE id = 7
t3 commit
`
	possible := strings.NewReplacer("set n=4 derived n:public.coupon.7@0:1.1:plus:-1:5 -- UPDATE coupon SET n = 4", "computed n derived n:public.coupon.7@0:1.1:current::5 -- UPDATE coupon SET n = n - 1").Replace(text)
	for _, tt := range []struct {
		text string
		want []string
	}{
		{possible, []string{"request buy-1's UPDATE of coupon 7 may rest on what was read before request buy-2 changed it", "If it does, request buy-1 did not take request buy-2's change into account."}},
		{text, []string{"request buy-1's UPDATE of coupon 7 overwrote a change by request buy-2 that it had not seen", "1. Request buy-1 (request buy-1) read", "\n2. Request buy-2 (request buy-2) set", "\n3. Request buy-1 set"}},
		{strings.Replace(text, "s1 t2", "s2 t2", 1), []string{"your UPDATE of coupon 7 overwrote a change by session 2 that it had not seen", "1. You read", "\n2. Session 2 (request buy-2) set", "\n3. You set"}},
	} {
		found := findings(t, tt.text)
		if len(found) != 1 || found[0].Name != anomaly.LostBetween {
			t.Fatalf("found %+v", found)
		}
		w := Warning(found[0], Reader{Session: 1, Others: true})
		for _, want := range tt.want {
			if !strings.Contains(w.Message+"\n"+w.Detail, want) {
				t.Errorf("%q is not in\n%s\n%s", want, w.Message, w.Detail)
			}
		}
	}
}

// TestUpserts: an INSERT that found its row changed it, and one that did not made it.
func TestUpserts(t *testing.T) {
	const began = "s1 session postgres \"15\"\ns2 session postgres \"15\"\ns1 t1 begin \"read committed\"\ns2 t2 begin \"read committed\"\n"
	for _, tt := range []struct{ text, want, not string }{
		{began + "t1 r coupon.7@0\nt2 w coupon.7 0>1\nt2 commit\nt1 w coupon.7 1>2\nt1 commit\n", "Session 2 changed coupon", "inserted"},
		{began + "t2 i coupon.7 0>1\nt1 r coupon.7@1\nt1 commit\nt2 abort\n", "Session 2 inserted coupon", "changed"},
	} {
		found := findings(t, tt.text)
		if len(found) != 1 {
			t.Fatalf("%d findings of\n%s", len(found), tt.text)
		}
		for _, x := range found[0].Transactions {
			for i := range x.Statements {
				if x.Statements[i].Verb == "update" {
					x.Statements[i].Verb = "insert"
				}
			}
		}
		if w := Warning(found[0], Reader{Session: 1, Others: true}); !strings.Contains(w.Detail, tt.want) || strings.Contains(w.Detail, tt.not) {
			t.Errorf("%q is not in, or %q is in\n%s", tt.want, tt.not, w.Detail)
		}
	}
}
