package explore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestWork: several advisers execute each job of a stage once, and the interleavings of all are counted; an error of one ends the stage.
func TestWork(t *testing.T) {
	refused := errors.New("the server is gone")
	for _, c := range []struct {
		bad  int
		want error
	}{{-1, nil}, {3, refused}} {
		var ran [20]atomic.Int32
		s := &stage{text: "%d of %d"}
		for i := range ran {
			s.jobs = append(s.jobs, job{run: func(_ context.Context, a *adviser) error {
				ran[i].Add(1)
				a.executed += 2
				if i == c.bad {
					return refused
				}
				return nil
			}})
		}
		r := &replayer{o: Options{Progress: func(int64, int64, string, ...any) {}}}
		all := []*adviser{{explorer: &explorer{r: r}}, {explorer: &explorer{r: r}}}
		n, err := s.work(t.Context(), all)
		total := 0
		for i := range ran {
			if got := int(ran[i].Load()); got > 1 || got < 1 && c.bad < 0 {
				t.Errorf("job %d ran %d times", i, got)
			} else {
				total += got
			}
		}
		if !errors.Is(err, c.want) || n != 2*total {
			t.Errorf("bad job %d: %d interleavings of %d jobs, error %v, want %v", c.bad, n, total, err, c.want)
		}
	}
}
