package record

import "testing"

// TestShares: what one session keeps leaves room for the others, and comes back when it ends.
func TestShares(t *testing.T) {
	for name, make := range map[string]func(*Recorder) Share{"texts": (*Recorder).Texts, "messages": (*Recorder).Messages} {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder("r", nil)
			b := make(r).kind
			piece := b.one / 16
			fill := func() (s Share) {
				for s = make(r); s.Takes(piece); s.Add(piece) {
				}
				return s
			}
			var greedy []Share
			kept := 0
			for range b.all/b.one + 2 {
				s := fill()
				greedy, kept = append(greedy, s), kept+s.Own()
			}
			if greedy[0].Own() != b.one || kept > b.all+len(greedy)*b.few || kept < b.all {
				t.Errorf("greedy sessions keep %d bytes, the first one %d", kept, greedy[0].Own())
			}
			small := make(r)
			if !small.Takes(b.few) || small.Takes(b.few+piece) {
				t.Error("beside them, a session may keep what is little, and no more")
			}
			greedy[0].Forget()
			if !small.Takes(piece) || small.Takes(b.one+1) {
				t.Error("when one of them has ended, another one may keep what one session may, and no more")
			}
			for i := range greedy[1:] {
				greedy[i+1].Forget()
			}
			if left := small.all.Load(); left != 0 {
				t.Errorf("%d bytes are kept when all have ended", left)
			}
		})
	}
	var alone Share
	if !alone.Takes(texts.one) || alone.Takes(texts.one+1) {
		t.Error("without others the bound of a session remains")
	}
}
