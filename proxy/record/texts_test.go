package record

import "testing"

// TestTextsAreShared: what one session keeps leaves room for the others, and comes back when it ends.
func TestTextsAreShared(t *testing.T) {
	const mib = 1 << 20
	r := NewRecorder("r", nil)
	fill := func() (s Texts) {
		for s = r.Texts(); s.Take(mib); s.Add(mib) {
		}
		return s
	}
	one, two, three := fill(), fill(), fill()
	if one.own != textsOfOne || one.own+two.own+three.own > textsOfAll {
		t.Errorf("three greedy sessions keep %d, %d and %d bytes", one.own, two.own, three.own)
	}
	small := r.Texts()
	if !small.Take(fewTexts) || small.Take(fewTexts+1) {
		t.Error("beside them, a session may keep what is little, and no more")
	}
	one.Forget()
	if !small.Take(mib) || small.Take(textsOfOne+1) {
		t.Error("when one of them has ended, another one may keep what one session may, and no more")
	}
	var alone Texts
	if !alone.Take(textsOfOne) || alone.Take(textsOfOne+1) {
		t.Error("without others the bound of a session remains")
	}
}
