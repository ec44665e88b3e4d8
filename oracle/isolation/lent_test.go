package isolation

import (
	"slices"
	"unsafe"

	"wirecheck/history"
)

// lender gives events as a reader does that lends their strings (history.Reader.Lend).
type lender struct{ texts [][]byte }

// event gives a copy of e, of which many strings change when the next one comes.
func (l *lender) event(e *history.Event) *history.Event {
	for _, text := range l.texts {
		for i := range text {
			text[i] = '?'
		}
	}
	l.texts = l.texts[:0]
	lent := *e
	lend := func(s *string) {
		if *s != "" {
			text := []byte(*s)
			l.texts, *s = append(l.texts, text), unsafe.String(&text[0], len(text))
		}
	}
	lent.Accesses, lent.Tokens, lent.Reads = slices.Clone(e.Accesses), slices.Clone(e.Tokens), slices.Clone(e.Reads)
	for i := range lent.Accesses {
		a := &lent.Accesses[i]
		for _, s := range []*string{&a.Row.Key, &a.Version, &a.Writer, &a.Prev, &a.PrevWriter, &a.Name, &a.Image, &a.Was, &a.Values} {
			lend(s)
		}
	}
	for i := range lent.Tokens {
		lend(&lent.Tokens[i])
	}
	for i := range lent.Reads {
		lend(&lent.Reads[i].Where)
		lend(&lent.Reads[i].Snapshot)
	}
	lend(&lent.Params)
	lend(&lent.Request)
	return &lent
}
