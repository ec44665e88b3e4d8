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
	c := isolation.New(isolation.Options{})
	for i := range events {
		if e := &events[i]; e.Kind == history.EventSession && len(users) > 0 {
			e.User, users = users[0], users[1:]
		}
		c.Add(&events[i])
	}
	return c.Summary()
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
	w := Warning(found[0])
	for _, want := range []string{"your UPDATE of shop.coupon 7 overwrote a change by session 2 that it had not seen", "3. You found shop.coupon 7:\n   UPDATE coupon SET n = 4"} {
		if !strings.Contains(w.Message+"\n"+w.Detail, want) {
			t.Errorf("%q is not in\n%s\n%s", want, w.Message, w.Detail)
		}
	}
	if want := "UPDATE coupon SET n = n + ? WHERE id = 7"; !strings.Contains(w.Hint, want) {
		t.Errorf("%q is not in\n%s", want, w.Hint)
	}
	// A near miss: what the second UPDATE changed, it overwrote.
	w = Warning(findings(t, strings.Replace(text, "match shop.coupon.7@1", "w shop.coupon.7 1>2", 1))[0])
	if !strings.Contains(w.Detail, "You changed shop.coupon 7") || strings.Contains(w.Detail, "found") {
		t.Errorf("%s\n%s", w.Message, w.Detail)
	}
}
