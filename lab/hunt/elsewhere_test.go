package hunt

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
)

// TestAlso: the smallest case of a bug is tried on other engines. One shows it, one's vendor permits it or it is not there, and one does not take its SQL.
func TestAlso(t *testing.T) {
	t.Parallel()
	h := hunterOn(t, "mariadb", "troc", filepath.Join(t.TempDir(), "found"))
	h.o.Also = []string{"mariadb", "postgres", "nothing"}
	t.Cleanup(func() {
		if err := h.closeOthers(context.Background()); err != nil {
			t.Error(err)
		}
	})
	level, err := panel.FindLevel(h.Instance.Engine, "read committed")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := scenario.Parse("torn.spec", torn(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := h.Find(t.Context(), spec, level, "troc")
	if err != nil || f == nil {
		t.Fatalf("finding %v, error %v", f, err)
	}
	if err := h.found(t.Context(), spec, level, f); err != nil {
		t.Fatal(err)
	}
	r := &Report{Bugs: h.store.kept}
	var text strings.Builder
	if err := r.printElsewhere(&text); err != nil {
		t.Fatal(err)
	}
	b := h.store.kept[0]
	if len(b.Elsewhere) != 3 || b.Elsewhere[0].Says != shownThere || b.Elsewhere[1].Says == shownThere || !strings.HasPrefix(b.Elsewhere[2].Says, "not tried: ") {
		t.Errorf("elsewhere: %+v", b.Elsewhere)
	}
	for _, want := range []string{"troc-001  mariadb", "read committed", "troc-001  postgres"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
	refused, err := scenario.Parse("mysql.spec", []byte("setup { CREATE TABLE t (a TINYINT UNSIGNED) }\nsession s\nstep x { SELECT 1 }\npermutation x"))
	if err != nil {
		t.Fatal(err)
	}
	if got := h.elsewhere(t.Context(), refused, level, f); !strings.HasPrefix(got[1].Says, "its SQL is refused: ") || got[0].Says != notShownThere {
		t.Errorf("another dialect: %+v", got)
	}
}
