package rewrite_test

import (
	"testing"

	"wirecheck/rewrite"
)

// TestCache: what was used last stays; a value alone stays, however large.
func TestCache(t *testing.T) {
	c := rewrite.NewCache[string, int](4096)
	for i, k := range []string{"a", "b", "c"} {
		c.Put(k, i, 100)
	}
	if _, ok := c.Get("a"); !ok {
		t.Error("a is lost")
	}
	c.Put("d", 3, 100)
	for k, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, ok := c.Get(k); ok != want {
			t.Errorf("%s is kept: %v, want %v", k, ok, want)
		}
	}
	c.Put("a", 7, 100)
	if v, _ := c.Get("a"); v != 7 {
		t.Errorf("a is %d, want what was put last", v)
	}
	if c.Put("e", 4, 10_000); c.Len() != 1 {
		t.Errorf("%d are kept beside a large one", c.Len()-1)
	}
}
