package condition

import "testing"

// TestMoments: a condition on the server's time is decided once the answer tells it, and not before.
func TestMoments(t *testing.T) {
	value := func(s string) Value { return &s }
	hour := value("=1 hour")
	later := &Term{Fn: "plus", Args: []Arg{{Column: "at"}, {Value: hour}}}
	moments := []Value{value("2026-11-28T21:30:00.5+00:00"), value("2026-11-28"), nil}
	for _, c := range []struct {
		of   Condition
		at   string
		want Truth
	}{
		{Open(">", Universal, "at", Moment(0)), "2026-11-28T21:30:00.500001+00:00", True},
		{Open(">", Universal, "at", Moment(0)), "2026-11-28T22:30:00.5+01:00", False},
		{Open("=", Date, "at", Moment(1)), "2026-11-28", True},
		{Open("day=", Timestamp, "at", Moment(1)), "2026-11-28 23:59:59", True},
		{Not(Open("day=", Timestamp, "at", Moment(1))), "2026-11-29 00:00:00", True},
		{OpenTerm("<", Local, later, Moment(1)), "2026-11-27 22:59:59", True},
		{OpenTerm("<", Local, later, Moment(1)), "2026-11-27 23:00:00", False},
		{Open(">", Universal, "at", Moment(2)), "2026-11-28T23:30:00+00:00", Null},
		{Open(">", Universal, "at", Moment(3)), "2026-11-28T23:30:00+00:00", Unsure},
	} {
		bound := c.of.Bind(func(int) (Value, bool) { return nil, false })
		known := bound.At(moments)
		if got := known.Holds(Image{"at": &c.at}); got != c.want {
			t.Errorf("%s of %s: %d, want %d", known.String(), c.at, got, c.want)
		}
		unknown := bound.At(nil)
		if got := unknown.Holds(Image{"at": &c.at}); got != Unsure {
			t.Errorf("%s of %s without the time: %d", unknown.String(), c.at, got)
		}
	}
}
