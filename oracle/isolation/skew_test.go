package isolation

import (
	"strconv"
	"strings"
	"testing"

	"wirecheck/oracle"
)

// TestRequestSkew has for each rule of write skew between requests a history that shows one, and near misses.
func TestRequestSkew(t *testing.T) {
	const (
		free  = `all booking "(= number room 1)"`
		both  = "s1 A " + free + "; s2 B " + free + "; " // t1 and t2
		skew  = "G2-request write skew between requests "
		maybe = "unknown: " + skew
		mine  = `; s1 A i booking.a >1 image "room 1"`
		his   = `s2 B i booking.b >1 image "room 1"`
		count = `where d "(= bool on true)"`
		two   = `r d.a@0 , r d.b@0 count d "(= bool on true)"`
		rows  = `r d.a@0 , r d.b@0 all d "(= bool on true)"`
		off   = ` image "on false" was "on true"`
		other = `s1 A all u "(and (= text name x) (<> number id 1))"; s2 B all u "(and (= text name x) (<> number id 2))"`
		named = `; s2 B w u.2 0>1 image "id 2 name x" was "id 2 name null"; s1 A w u.1 0>1 image "id 1 name x" was "id 1 name null"`
		last  = `where inv "(and (= number y 1) (>= number no 41))" last no`
		given = "s1 A " + last + "; s2 B " + last + `; s2 B i inv.b >1 image "y 1 no 42"; s1 A i inv.a >1 image "y 1 no 42"`
	)
	for _, tt := range []struct{ name, text, want string }{
		{"the next number", given, skew + "[1 2 3 4]"},
		{"the next number, by the order of rows", strings.ReplaceAll(given, "(>= number no 41)", "(or (null no) (> number no 41))"), skew + "[1 2 3 4]"},
		{"the next number below", strings.NewReplacer("(>= number", "(<= number", "42", "40").Replace(given), skew + "[1 2 3 4]"},
		{"the next number, below the last one", strings.ReplaceAll(given, "42", "40"), ""},
		{"the next number, and the server numbers rows", strings.Replace(given, `inv.a >1 image "y 1 no 42"`, `inv.a >1 image "y 1 no 43"`, 1), maybe + "[1 2 3 4]"},
		{"the next number of another list", strings.ReplaceAll(given, `image "y 1`, `image "y 2`), ""},
		{"the next number, not known", strings.ReplaceAll(given, "no 42", "id 42"), ""},
		{"the next second", strings.NewReplacer("41", "1764450041", "42", "1764450042").Replace(given), maybe + "[1 2 3 4]"},
		{"a number behind what the application asked for", strings.ReplaceAll(given, " last no", ""), maybe + "[1 2 3 4]"},
		{"the last number of another column", strings.ReplaceAll(given, " last no", " last y"), maybe + "[1 2 3 4]"},
		{"check, then insert", both + his + mine, skew + "[1 2 3 4]"},
		{"the other one ends first", both + strings.TrimPrefix(mine, "; ") + "; " + his, skew + "[1 2 3 4]"},
		{"through several sessions", both + his + `; s3 A i booking.a >1 image "room 1"`, skew + "[1 2 3 4]"},
		{"ranges that overlap", strings.NewReplacer("(= number room 1)", "(and (= number room 1) (< number start 11))", `"room 1"`, `"room 1 start 10"`).Replace(both + his + mine), skew + "[1 2 3 4]"},
		{"one after the other", "s1 A " + free + mine + "; s2 B r booking.a@1 " + free + "; " + his, ""},
		{"the other one checked behind the insert and found nothing", "s1 A " + free + mine + "; s2 B " + free + "; " + his, ""},
		{"another room", both + `s2 B i booking.b >1 image "room 2"` + mine, ""},
		{"both in another room", both + `s2 B i booking.b >1 image "room 2"; s1 A i booking.a >1 image "room 2"`, ""},
		{"one only reads", both + his, ""},
		{"one wrote another table", both + his + `; s1 A i log.a >1 image "room 1"`, ""},
		{"one did not check", "s1 A " + free + "; " + his + mine, ""},
		{"one checked behind its insert", "s1 A " + free + "; " + his + "; s2 B r booking.b@1 " + free + mine, ""},
		{"room not known", both + `s2 B i booking.b >1 image "hour 9"` + mine, ""},
		{"refused by a constraint", both + his + "; s1 A stmt error 23505", ""},
		{"the insert is rolled back", both + his + `; s1 t9 begin; t9 i booking.a >1 image "room 1" request A; t9 abort`, ""},
		{"checked again, and found", both + his + "; s1 A r booking.b@1 " + free + mine, ""},
		{"checked again in the transaction of the insert", both + his + `; s1 t9 begin; t9 r booking.b@1 ` + free + ` request A; t9 i booking.a >1 image "room 1" request A; t9 commit`, ""},
		{"checked again by what is not known", both + his + "; s1 t9 begin; t9 opaque request A -- SELECT f(room) FROM booking\nt9 commit" + mine, ""},
		{"checked again, and it is not certain which row was found", both + his + "; s1 t90 begin; t90 r booking.b@1? request A -- SELECT EXISTS (SELECT 1 FROM booking)\nt90 commit" + mine, ""},
		{"another table read by what is not known", both + his + "; s1 t9 begin; t9 opaque request A -- SELECT f(room) FROM rooms\nt9 commit" + mine, skew + "[1 2 3 7]"},
		{"checked another room again", both + his + `; s1 A all booking "(= number room 2)"` + mine, skew + "[1 2 3 5]"},
		{"checked twice", both + "s1 A " + free + "; " + his + mine, skew + "[2 3 4 5]"},
		{"rows were found", "s1 A r booking.x@0 " + free + "; s2 B r booking.x@0 " + free + "; " + his + mine, maybe + "[1 2 3 4]"},
		{"rows found by a request before", "s3 C r booking.x@0 " + free + `; s3 C i booking.y >1 image "room 1"; ` + `s1 A all booking "(= number room 2)"; s2 B all booking "(= number room 2)"; ` +
			`s2 B i booking.b >1 image "room 2"; s1 A i booking.a >1 image "room 2"`, maybe + "[3 4 5 6]"},
		{"cancelled before", both + his + `; s3 C d booking.b 1>2 was "room 1"` + mine, maybe + "[1 2 3 5]"},
		{"cancelled before, and told behind it", both + his + "; s3 t90 begin; t90 stmt -- DELETE FROM booking WHERE id = 7\nt90 commit pending" + mine + `; t90 late 1 d booking.b 1>2 was "room 1"`, maybe + "[1 2 3 7]"},
		{"told behind it, of another room", both + his + "; s3 t90 begin; t90 stmt -- DELETE FROM booking WHERE id = 7\nt90 commit pending" + mine + `; t90 late 1 i booking.c >1 image "room 2"`, skew + "[1 2 3 7]"},
		{"told behind it, of another table", both + his + "; s3 t90 begin; t90 stmt -- DELETE FROM room\nt90 commit pending" + mine, skew + "[1 2 3 7]"},
		{"told behind it, with the session's end", both + his + "; s3 t90 begin; t90 stmt -- DELETE FROM booking WHERE id = 7\nt90 commit pending" + mine + "; s3 close", skew + "[1 2 3 7]"},
		{"changed before, in the same room", both + his + `; s3 C w booking.b 1>2 image "room 1" was "room 1"` + mine, skew + "[1 2 3 5]"},
		{"alternatives that are all fixed", strings.ReplaceAll(both+his+mine, "(= number room 1)", "(or (= number room 1) (= number room 2))"), skew + "[1 2 3 4]"},
		{"an alternative that is not fixed", strings.ReplaceAll(both+his+mine, "(= number room 1)", "(or (= number room 1) (> number room 0))"), maybe + "[1 2 3 4]"},
		{"another row with this name", other + named, skew + "[1 2 3 4]"},
		{"another row with this name, one keeps it", other + strings.Replace(named, `was "id 1 name null"`, `was "id 1 name x"`, 1), maybe + "[1 2 3 4]"},
		{"another row with this name, none of a kind", strings.NewReplacer("number id 1", "text kind x", "number id 2", "text kind x", `image "`, `image "kind x `, `was "`, `was "kind x `).Replace(other + named), ""},
		{"no column is fixed", strings.ReplaceAll(both+his+mine, "(= number room 1)", "(> number room 0)"), maybe + "[1 2 3 4]"},
		{"not known whether rows were found", strings.ReplaceAll(both, "all ", "where ") + his + mine, maybe + "[1 2 3 4]"},
		{"a row moved into the question", strings.ReplaceAll(both+`s2 B w seat.b 0>1 image "room 1" was "room null"; s1 A w seat.a 0>1 image "room 1" was "room null"`, "booking", "seat"), skew + "[1 2 3 4]"},
		{"a row moved into the question by both", both + `s2 B w booking.x 0>1 image "room 1" was "room null"; s1 A w booking.x 1>2 image "room 1" was "room 1"`, ""},
		{"by count", "s1 A " + count + "; s2 B " + count + "; s2 B w d.b 0>1" + off + "; s1 A w d.a 0>1" + off, maybe + "[1 2 3 4]"},
		{"by count, exactly", "s1 A " + two + "; s2 B " + two + "; s2 B w d.b 0>1" + off + "; s1 A w d.a 0>1" + off, skew + "[1 2 3 4]"},
		{"by count, and the other one takes it back", "s1 A " + two + "; s2 B " + two + "; s2 B w d.b 0>1" + off + `; s3 - w d.b 1>2 image "on true" was "on false"` + "; s1 A w d.a 0>1" + off, maybe + "[1 2 3 5]"},
		{"by count, and an older change is told in between", "s9 t90 begin; t90 stmt; t90 commit pending; s1 A " + two + "; s2 B " + two + "; s2 B w d.b 0>1" + off +
			`; t90 late 1 w d.z 0>1 image "on true" was "on true"; s1 A w d.a 0>1` + off, skew + "[4 5 6 8]"},
		{"by count, a row deleted", "s1 A " + two + "; s2 B " + two + `; s2 B d d.b 0>1 was "on true"; s1 A d d.a 0>1 was "on true"`, maybe + "[1 2 3 4]"},
		{"by count, the one moves in, the other out", "s1 A " + two + "; s2 B " + two + `; s2 B w d.c 0>1 image "on true" was "on false"; s1 A w d.a 0>1` + off, maybe + "[1 2 3 4]"},
		{"by count, both move in", "s1 A " + two + "; s2 B " + two + `; s2 B w d.c 0>1 image "on true" was "on false"; s1 A w d.e 0>1 image "on true" was "on false"`, skew + "[1 2 3 4]"},
		{"by count, another column changes", "s1 A " + two + "; s2 B " + two + `; s2 B w d.b 0>1 image "on true" was "on true"; s1 A w d.a 0>1 image "on true" was "on true"`, maybe + "[1 2 3 4]"},
		{"by count, a request before went on with less", "s3 C r d.b@0 count d \"(= bool on true)\"; s3 C w d.b 0>1" + off + `; s3 - w d.b 1>2 image "on true" was "on false"; ` +
			"s1 A " + strings.Replace(two, "b@0", "b@2", 1) + "; s2 B " + strings.Replace(two, "b@0", "b@2", 1) + "; s2 B w d.b 2>3" + off + "; s1 A w d.a 0>1" + off, maybe + "[4 5 6 7]"},
		{"by count, a request before went on with as many", "s3 C " + two + "; s3 C w d.b 0>1" + off + `; s3 - w d.b 1>2 image "on true" was "on false"; ` +
			"s1 A " + strings.Replace(two, "b@0", "b@2", 1) + "; s2 B " + strings.Replace(two, "b@0", "b@2", 1) + "; s2 B w d.b 2>3" + off + "; s1 A w d.a 0>1" + off, skew + "[4 5 6 7]"},
		{"by rows", "s1 A " + rows + "; s2 B " + rows + "; s2 B w d.b 0>1" + off + "; s1 A w d.a 0>1" + off, maybe + "[1 2 3 4]"},
		{"by rows, of which each had read its own before", "s1 A r d.a@0; s2 B r d.b@0; s1 A " + rows + "; s2 B " + rows + "; s2 B w d.b 0>1" + off + "; s1 A w d.a 0>1" + off, skew + "[3 4 5 6]"},
		{"by rows, of which one had read its own before", "s1 A r d.a@0; s1 A " + rows + "; s2 B " + rows + "; s2 B w d.b 0>1" + off + "; s1 A w d.a 0>1" + off, maybe + "[2 3 4 5]"},
		{"by rows, of which each read its own behind", "s1 A " + rows + "; s2 B " + rows + "; s1 A r d.a@0; s2 B r d.b@0; s2 B w d.b 0>1" + off + "; s1 A w d.a 0>1" + off, maybe + "[1 2 5 6]"},
		{"by rows of which not all are known", strings.ReplaceAll("s1 A r d.a@0; s2 B r d.b@0; s1 A "+rows+"; s2 B "+rows+"; s2 B w d.b 0>1"+off+"; s1 A w d.a 0>1"+off, " all ", " where "), maybe + "[3 4 5 6]"},
		{"by rows, one after the other", "s1 A " + rows + "; s1 A w d.a 0>1" + off + "; s2 B r d.a@1 , r d.b@0 all d \"(= bool on true)\"; s2 B w d.b 0>1" + off, ""},
		{"by rows, read again", "s1 A " + rows + "; s2 B " + rows + "; s2 B w d.b 0>1" + off + "; s1 A r d.b@1; s1 A w d.a 0>1" + off, ""},
		{"the same row, computed", "s1 A r x@0; s2 B r x@0; s2 B inc x 0>1 computed n; s1 A inc x 1>2 computed n", ""},
		{"the other one is a transaction", `s2 t9 begin; t9 ` + free + "; s1 A " + free + `; t9 i booking.b >1 image "room 1"; t9 commit` + mine, skew + "[3 6 9]"},
		{"the other one is a transaction in the same session", "s1 A " + free + "; s1 t9 begin; t9 " + free + `; t9 i booking.b >1 image "room 1"; t9 commit` + mine, ""},
		{"both are transactions", `s1 t8 begin; s2 t9 begin; t8 ` + free + ` request A; t9 ` + free + ` request B; t8 i booking.a >1 image "room 1" request A; t9 i booking.b >1 image "room 1" request B; t8 commit; t9 commit`, "G2 write skew [8 9]"},
		{"neither is a request", "s1 - " + free + "; s2 - " + free + `; s2 - i booking.b >1 image "room 1"; s1 - i booking.a >1 image "room 1"`, ""},
		{"one request", "s1 A " + free + "; s2 A " + free + `; s2 A i booking.b >1 image "room 1"; s1 A i booking.a >1 image "room 1"`, ""},
		{"three at once", both + "s3 C " + free + "; " + his + mine + `; s3 C i booking.c >1 image "room 1"`, skew + "[1 2 4 5]\n" + skew + "[1 3 5 6]\n" + skew + "[2 3 4 6]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := parse(t, autocommit(tt.text))
			found, c := run(Options{Possible: true}, events)
			if c.Broken() != "" {
				t.Fatal(c.Broken())
			}
			if got := briefs(found); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			possible := strings.HasPrefix(tt.want, "unknown")
			if quiet, d := run(Options{}, events); (len(quiet) > 0) != (tt.want != "" && !possible) || (d.Coverage().Possible == 1) != possible {
				t.Errorf("without Possible: %q, %+v", briefs(quiet), d.Coverage())
			}
			if alone, _ := run(Options{Transactions: true}, events); strings.Contains(briefs(alone), "requests") {
				t.Errorf("transactions alone: %q", briefs(alone))
			}
			for i := range found {
				if f := &found[i]; strings.Contains(tt.want, "requests") && (f.Promised || f.PreventedBy != "" || f.Edges[0].Kind != oracle.EdgeRW || len(f.Remedies) == 0 ||
					f.Remedies[len(f.Remedies)-1].Text != "check and write in one transaction at SERIALIZABLE") {
					t.Errorf("promised %v, prevented by %q, %s first, %d remedies", f.Promised, f.PreventedBy, f.Edges[0].Kind, len(f.Remedies))
				}
			}
		})
	}
}

// TestMovesLearnedWhenFull: the number with which units go on with a known question is learned also where no further question is remembered.
func TestMovesLearnedWhenFull(t *testing.T) {
	const (
		asks = ` count d "(= bool on true)"`
		off  = ` image "on false" was "on true"`
		on   = ` image "on true" was "on false"`
	)
	first := "s3 C r d.a@0 , r d.b@0" + asks + "; s3 C w d.b 0>1" + off + "; s3 - w d.b 1>2" + on
	less := "s3 D r d.b@2" + asks + "; s3 D w d.b 2>3" + off + "; s3 - w d.b 3>4" + on
	race := func(b string) string {
		return "; s1 A r d.a@0 , r d.b@" + b + asks + "; s2 B r d.a@0 , r d.b@" + b + asks + "; s2 B w d.b " + b + ">9" + off + "; s1 A w d.a 0>1" + off
	}
	for text, want := range map[string]int{first + "; " + less + race("4"): 0, first + race("2"): 1} {
		events := parse(t, autocommit(text))
		c, learned, found := New(Options{}), false, 0
		for i := range events {
			found += len(c.Add(&events[i]))
			if !learned && len(c.requests.moved) == 1 {
				learned = true
				for n := range maxGuards {
					c.requests.moved[move{strconv.Itoa(n), 1}] = 0
				}
			}
		}
		if !learned || found != want {
			t.Errorf("learned %v; %d findings, want %d: %s", learned, found, want, text)
		}
	}
}

// TestSkewNeverTold: a finding that waits for writes which a history does not tell is counted as possible.
func TestSkewNeverTold(t *testing.T) {
	const free, booked = `all booking "(= number room 1)"`, ` >1 image "room 1"`
	found, c := run(Options{}, parse(t, autocommit("s1 A "+free+"; s2 B "+free+"; s2 B i booking.b"+booked+"; s3 t90 begin; t90 stmt -- DELETE FROM booking\nt90 commit pending; s1 A i booking.a"+booked)))
	if len(found) > 0 || c.Coverage().Possible != 1 {
		t.Errorf("found %s, %s", briefs(found), c.Coverage())
	}
}
