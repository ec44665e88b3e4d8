package replay

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"wirecheck/trace"
)

// Latency is how long the statements of one shape took, in the trace and in the replay.
type Latency struct {
	Statement string `json:"statement"` // without literals
	Count     int    `json:"count"`
	Recorded  Times  `json:"recorded"`
	Replayed  Times  `json:"replayed"`
}

// Times are the median and the 99th of a hundred durations, to about 3%.
type Times struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// tooShort is added to both durations before they are compared: twice as long means little where both are far shorter.
const tooShort = time.Millisecond

// differs is by how many times the replay was faster or slower, as a logarithm.
func (l *Latency) differs() float64 {
	times := func(a, b time.Duration) float64 { return math.Abs(math.Log(float64(a+tooShort) / float64(b+tooShort))) }
	return max(times(l.Recorded.P50, l.Replayed.P50), times(l.Recorded.P99, l.Replayed.P99))
}

// latencies collects durations, in memory that does not depend on how many there are.
type latencies map[string]*durations // by shape

// mostLatencies bounds the shapes; those that come later are counted together, under otherShapes.
const (
	mostLatencies = 10_000
	otherShapes   = "(other statements)"
)

type durations struct{ recorded, replayed spread }

// add takes a step that is done. What was refused in the trace or in the replay, and not in both, did other work there.
func (l latencies) add(s *Step) {
	if s.took <= 0 || s.shape == "" || s.Lost != nil || s.failed() != (s.Statement.Error != nil) {
		return
	}
	d := l[s.shape]
	if d == nil && len(l) >= mostLatencies {
		s.shape = otherShapes
		d = l[s.shape]
	}
	if d == nil {
		d = &durations{spread{}, spread{}}
		l[s.shape] = d
	}
	d.recorded.add(s.took)
	d.replayed.add(s.lasted)
}

// list gives the shapes whose times differ most.
func (l latencies) list(most int) []Latency {
	list := make([]Latency, 0, len(l))
	for shape, d := range l {
		list = append(list, Latency{shape, d.recorded.count(), d.recorded.times(), d.replayed.times()})
	}
	slices.SortFunc(list, func(a, b Latency) int {
		return cmp.Or(cmp.Compare(b.differs(), a.differs()), cmp.Compare(b.Count, a.Count), strings.Compare(a.Statement, b.Statement))
	})
	return list[:min(len(list), most)]
}

// spread counts durations by their buckets (trace.Bucket). There are many of them, each of which has few.
type spread map[int]int

func (s spread) add(d time.Duration) { s[trace.Bucket(int64(max(d, 1)))]++ }

func (s spread) count() (n int) {
	for _, c := range s {
		n += c
	}
	return n
}

// times gives the durations that half of them, and 99 of a hundred, do not exceed.
func (s spread) times() Times {
	places, all := slices.Sorted(maps.Keys(s)), s.count()
	at := func(percent int) time.Duration {
		rest := (all*percent + 99) / 100
		for _, place := range places {
			if rest -= s[place]; rest <= 0 {
				return time.Duration(trace.Middle(place))
			}
		}
		return 0
	}
	return Times{at(50), at(99)}
}
