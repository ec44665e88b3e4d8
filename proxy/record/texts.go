package record

import "sync/atomic"

// Texts counts the bytes of the texts that a session keeps, as those of its prepared statements. All sessions of a Recorder share a bound, and
// those that keep little are not affected by those that keep much. The zero Texts has a bound of its own.
type Texts struct {
	all *atomic.Int64 // of all sessions
	own int
}

const (
	textsOfOne = 16 << 20
	textsOfAll = 32 << 20
	// fewTexts is what a session may keep whatever others keep.
	fewTexts = 256 << 10
)

// Texts makes the count of a session.
func (r *Recorder) Texts() Texts { return Texts{all: &r.texts} }

// Take reports whether the session may keep n bytes more.
func (t *Texts) Take(n int) bool {
	own := t.own + n
	return own <= fewTexts || own <= textsOfOne && (t.all == nil || t.all.Load()+int64(n) <= textsOfAll)
}

// Add counts n bytes more, or less.
func (t *Texts) Add(n int) {
	t.own += n
	if t.all != nil {
		t.all.Add(int64(n))
	}
}

// Forget says that the session keeps none any more.
func (t *Texts) Forget() { t.Add(-t.own) }
