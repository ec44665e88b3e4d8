package hunt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wirecheck/backends"
	"wirecheck/fleet/bus"
	"wirecheck/fleet/work"
	"wirecheck/lab/panel"
	"wirecheck/oracle"
)

// memberOf joins a fleet with a hunter that has no server, and a folder of its own. known is the content of its file; empty: it has none.
func memberOf(t *testing.T, where, known string) (*member, error) {
	t.Helper()
	return memberOn(t, busOf(t, where), known)
}

func busOf(t *testing.T, where string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), where, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// memberOn is memberOf with a connection.
func memberOn(t *testing.T, b *bus.Bus, known string) (*member, error) {
	t.Helper()
	product, err := backends.ByName("mariadb")
	if err != nil {
		t.Fatal(err)
	}
	h := &hunter{o: huntOptionsOf(t, "mariadb", "tlp", filepath.Join(t.TempDir(), "found")), Executor: &panel.Executor{Instance: &backends.Instance{Engine: product, Version: "1"}}}
	if known != "" {
		h.o.Known = filepath.Join(t.TempDir(), "known.txt")
		if err := os.WriteFile(h.o.Known, []byte(known), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if h.o.Fleet, err = work.Join(t.Context(), b, "hunt-test", time.Hour); err != nil {
		t.Fatal(err)
	}
	m, err := joined(t.Context(), h)
	if m != nil {
		t.Cleanup(m.close)
	}
	return m, err
}

// TestMemberEnds: a hunter has what the others found even if the one that ended before it took the fleet's server along, and cases are not done before
// the fleet knows what was found in them.
func TestMemberEnds(t *testing.T) {
	where := bus.Embedded + filepath.Join(t.TempDir(), "fleet")
	host := busOf(t, where)
	first, err := memberOn(t, host, "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := memberOf(t, where, "")
	if err != nil {
		t.Fatal(err)
	}
	g, err := first.take(t.Context())
	if err != nil || g == nil {
		t.Fatalf("%v, error %v", g, err)
	}
	bug := func(name string) *Bug {
		return &Bug{Signature: name, Title: name, Finding: &oracle.Finding{Class: oracle.TLP}}
	}
	first.unsent = append(first.unsent, &unsent{name: "tlp", object: "late", path: filepath.Join(unsentFolder, "tlp-1"), bug: bug("late"), files: map[string]string{}})
	if err := first.leave(t.Context(), g); err != nil || len(first.unsent) != 1 {
		t.Errorf("left before its end: %d are not sent, want 1; error %v", len(first.unsent), err)
	}
	if g, err = first.take(t.Context()); err != nil || g == nil {
		t.Fatalf("%v, error %v", g, err)
	}
	g.next = g.end
	if err := first.leave(t.Context(), g); err != nil || len(first.unsent) != 0 {
		t.Errorf("done: %d are not sent; error %v", len(first.unsent), err)
	}
	if _, err := first.place(t.Context(), "tlp", 1, bug("soon"), map[string]string{}); err != nil {
		t.Fatal(err)
	}
	first.close()
	host.Close()
	if err := second.finish(t.Context()); err != nil || len(second.kept) != 2 {
		t.Errorf("%d bugs, want 2; error %v", len(second.kept), err)
	}
}

// TestMemberLarge: what is larger than a message of NATS is entered as any other bug, and another hunter has it as it was.
func TestMemberLarge(t *testing.T) {
	where := bus.Embedded + filepath.Join(t.TempDir(), "fleet")
	var members []*member
	for range 2 {
		m, err := memberOf(t, where, "")
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	for i, size := range []int{10, 3 << 20} {
		title := strings.Repeat("x", size)
		b := &Bug{Signature: title[:10] + string(rune('a'+i)), Title: title, Finding: &oracle.Finding{Class: oracle.TLP}}
		if kept, err := members[0].place(t.Context(), "tlp", 1, b, map[string]string{"case.spec": title, "history.jsonl": title}); err != nil || kept != b {
			t.Fatalf("%d bytes: kept %v, error %v", size, kept != nil, err)
		}
	}
	if len(members[0].unsent) > 0 {
		t.Errorf("%d are not sent", len(members[0].unsent))
	}
	if err := members[1].refresh(t.Context()); err != nil || len(members[1].kept) != 2 {
		t.Fatalf("the other hunter has %d bugs, error %v", len(members[1].kept), err)
	}
	for _, name := range []string{"case.spec", "history.jsonl", bugFile} {
		one, err := os.ReadFile(filepath.Join(members[0].dir, "tlp-002", name))
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(members[1].dir, "tlp-002", name))
		if err != nil || string(one) != string(other) || len(one) < 3<<20 {
			t.Errorf("%s: %d bytes and %d, error %v", name, len(one), len(other), err)
		}
	}
}

// TestMemberKnown: what the first hunter knows, all know. A hunter with other signatures is refused; the same ones in another order are not others.
func TestMemberKnown(t *testing.T) {
	where := bus.Embedded + filepath.Join(t.TempDir(), "fleet")
	for _, tt := range []struct {
		name, known, refused string
	}{
		{"the first one", "one # reported\ntwo\n", ""},
		{"none", "", ""},
		{"the same", "two\n\none\n", ""},
		{"another one", "one\nthree\n", "only the file has 1 (the first: three) and only the fleet has 1 (the first: two); leave it out"},
		{"fewer", "one\n", "only the file has none and only the fleet has 1 (the first: two)"},
	} {
		m, err := memberOf(t, where, tt.known)
		if tt.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.refused)
			}
			continue
		}
		if err != nil || len(m.known) != 2 || !m.known["one"] || !m.known["two"] {
			t.Errorf("%s: known %v, error %v", tt.name, m, err)
		}
	}
}

// TestMemberKnownNone: a hunt that began without known bugs refuses a hunter that knows some.
func TestMemberKnownNone(t *testing.T) {
	where := bus.Embedded + filepath.Join(t.TempDir(), "fleet")
	if _, err := memberOf(t, where, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := memberOf(t, where, "one\n"); err == nil || !strings.Contains(err.Error(), "only the fleet has none") {
		t.Errorf("error %v", err)
	}
}
