package oracle

import "testing"

// TestCode: tags name a place in the code in several forms; what is no place is none.
func TestCode(t *testing.T) {
	for _, tt := range []struct {
		tags []string
		file string
		line int
	}{
		{[]string{"route=/buy", "code.filepath=app/shop.py", "code.lineno=12"}, "app/shop.py", 12},
		{[]string{"code.file.path=/srv/app/shop.py"}, "/srv/app/shop.py", 0},
		{[]string{"source_location=app/models/coupon.rb:7"}, "app/models/coupon.rb", 7},
		{[]string{"file=a b.js:x", "line=-3"}, "a b.js:x", 0},
		{[]string{"line=3", "route=/buy"}, "", 3},
		{nil, "", 0},
	} {
		s := Statement{Tags: tt.tags}
		if file, line := s.Code(); file != tt.file || line != tt.line {
			t.Errorf("%q: %s:%d, want %s:%d", tt.tags, file, line, tt.file, tt.line)
		}
	}
}
