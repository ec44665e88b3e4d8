package generate

// News is what a steering has learned that others do not know.
type News struct {
	Seen     []string `json:"seen,omitempty"` // combinations and outcomes, each as often as it was seen
	Pool     []*Entry `json:"pool,omitempty"`
	Metadata []string `json:"metadata,omitempty"`
}

// mostTold is how often one steering tells a combination: the choice hardly depends on how often it came beyond.
const mostTold = 8

// Share makes the steering remember what it learns, for News.
func (s *Steering) Share() {
	s.news = &News{}
	s.Coverage.tell = func(key string) { s.news.Seen = append(s.news.Seen, key) }
}

// News is what was learned since it was last asked for, by this steering itself; nil: nothing.
func (s *Steering) News() *News {
	n := s.news
	if n == nil || len(n.Seen)+len(n.Pool)+len(n.Metadata) == 0 {
		return nil
	}
	s.news = &News{}
	return n
}

// Hear adds what another steering has learned.
func (s *Steering) Hear(n *News) {
	for _, key := range n.Seen {
		s.Coverage.hear(key)
	}
	for _, e := range n.Pool {
		s.enter(e)
	}
	for _, text := range n.Metadata {
		s.Metadata[text] = true
	}
}
