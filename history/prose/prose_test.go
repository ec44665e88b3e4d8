package prose

import "testing"

func TestLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"SELECT 1", 0, "SELECT 1"},
		{"SELECT 1", 8, "SELECT 1"},
		{"SELECT 12", 8, "SELEC..."},
		{" SELECT\n\t1 ", 8, "SELECT 1"},
		{"SELECT 1 \n\n", 8, "SELECT 1"},
		{"äöüß", 4, "äöüß"},
		{"äöüßé", 4, "ä..."},
		{"a\x1b[2Jb\xff", 0, "a.[2Jb."},
		{"a b c d", 4, "a..."},
		{" \n", 5, ""},
		{"", 5, ""},
	} {
		if got := Line(tt.text, tt.most); got != tt.want {
			t.Errorf("Line(%q, %d): got %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
	if got := string(AppendLine([]byte("x: "), " a\nb", 0)); got != "x: a b" {
		t.Errorf("AppendLine: %q", got)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text      string
		most      int
		cut, tail string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdefg", 6, "abc...", "...bcdefg"},
		{"aääää", 6, "aä...", "...äää"},
		{"äääää", 5, "ä...", "...ää"},
		{"abc", 2, "...", "...bc"},
		{"abc", -1, "...", ""},
	} {
		if got := Cut(tt.text, tt.most); got != tt.cut {
			t.Errorf("Cut(%q, %d): got %q, want %q", tt.text, tt.most, got, tt.cut)
		}
		if tt.most < 0 {
			continue
		}
		if got := Tail(tt.text, tt.most); got != tt.tail {
			t.Errorf("Tail(%q, %d): got %q, want %q", tt.text, tt.most, got, tt.tail)
		}
	}
}

func TestCount(t *testing.T) {
	if got := Count(1, "row") + Count(0, "row") + Count(int64(-1), "row"); got != "1 row0 rows-1 rows" {
		t.Error(got)
	}
}
