package generate_test

import (
	"math/rand/v2"
	"testing"

	"wirecheck/lab/generate"
)

// TestNews: who hears what another steering has learned knows the same, and tells none of it again.
func TestNews(t *testing.T) {
	first, second := generate.NewSteering(), generate.NewSteering()
	if first.News() != nil {
		t.Error("news that nobody asked for")
	}
	first.Share()
	second.Share()
	g, err := generate.New("postgres", generate.Limits{}, rand.New(rand.NewPCG(1, 1)).IntN)
	if err != nil {
		t.Fatal(err)
	}
	first.Learn(g.Case(), nil, []string{"a", "b"}, true)
	n := first.News()
	if n == nil || first.News() != nil {
		t.Fatalf("news %v, and more", n)
	}
	second.Hear(n)
	if second.Coverage.Len() != first.Coverage.Len() || second.Coverage.Outcomes() != 2 || len(second.Pool) != 1 {
		t.Errorf("%d combinations of %d, %d outcomes, %d in the pool", second.Coverage.Len(), first.Coverage.Len(), second.Coverage.Outcomes(), len(second.Pool))
	}
	if second.News() != nil {
		t.Error("what was heard is told again")
	}
}
