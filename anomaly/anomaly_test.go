package anomaly

import (
	"slices"
	"testing"
)

// TestList holds the list to what it must satisfy as a whole.
func TestList(t *testing.T) {
	seen := map[[2]string]bool{}
	unnamed := map[Class]bool{}
	for _, a := range List {
		k := [2]string{string(a.Class), a.Name}
		if seen[k] || a.Phenomenon == "" || a.Formula == "" || a.Source == "" || a.Digit < 0 || a.Digit > 9 {
			t.Errorf("%v is there twice or is not complete", k)
		}
		if unnamed[a.Class] {
			t.Errorf("%v stands behind the unnamed row of its class", k)
		}
		seen[k] = true
		unnamed[a.Class] = unnamed[a.Class] || a.Name == ""
		if slices.Contains(a.Implies, a.Phenomenon) {
			t.Errorf("%v implies itself", k)
		}
	}
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		class Class
		name  string
		want  Phenomenon
		ok    bool
	}{
		{GSingle, LostUpdate, P4, true}, {GSingle, Vanishes, POTV, true}, {GSingle, "", PGSingle, true}, {GSingle, "a name of tomorrow", PGSingle, true},
		{G0, DirtyWrite, PG0, true}, {G2Item, WriteSkew, PG2Item, true}, {GSingle + SuffixProcess, LostUpdate, "", false}, {G0 + SuffixRealtime, "", "", false}, {"wss-tx", "", "", false},
	} {
		if got, ok := Broken(tt.class, tt.name); got != tt.want || ok != tt.ok {
			t.Errorf("%s %q breaks %q, %v", tt.class, tt.name, got, ok)
		}
	}
	if a, ok := Of(GSingle+SuffixRealtime, LostUpdate); !ok || a.Digit != 2 {
		t.Errorf("a lost update that needs real time is %+v, %v", a, ok)
	}
}
