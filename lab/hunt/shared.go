package hunt

import (
	"context"
	"encoding/json"
	"errors"
)

// shared is what the hunters of one hunt have in common. A hunter by itself has it in its folder (alone); those of a fleet have it in the fleet
// (member).
type shared interface {
	// take gives the next cases, which no other hunter has; nil: there are none left.
	take(ctx context.Context) (*group, error)
	// counted keeps what a case added to the counts, with the group's next case. The error is errTaken if another hunter has the group.
	counted(ctx context.Context, g *group, added *State) error
	// leave ends a group. What is left of it is another hunter's.
	leave(ctx context.Context, g *group) error
	// refresh brings the store to what all hunters have counted and found.
	refresh(ctx context.Context) error
	// finish is the last refresh.
	finish(ctx context.Context) error
	// nth says how often findings alike were found, this one included, which is by's.
	nth(ctx context.Context, key, by string) (int, error)
	// place gives files a folder, whose name begins so and has a number from n on. For a bug it is the bug that is kept: another one if that is the
	// same.
	place(ctx context.Context, name string, n int, b *Bug, files map[string]string) (*Bug, error)
	// changed writes a bug again.
	changed(ctx context.Context, b *Bug) error
}

// group is a group of cases on one database, or what is left of it.
type group struct {
	n, next, end int      // the cases from next on, without end
	held         *holding // a member's
}

// errTaken says that another hunter has gone on with a group.
var errTaken = errors.New("another hunter has the group")

// alone is a hunter by itself.
type alone struct {
	*store
	group, cases int // as Options has them
}

// take implements shared.
func (a *alone) take(context.Context) (*group, error) {
	next := a.state.Next
	if a.cases > 0 && next >= a.cases {
		return nil, nil
	}
	return cases(next/a.group, next, a.group, a.cases), nil
}

// cases are those of a group from next on.
func cases(n, next, size, all int) *group {
	g := &group{n: n, next: next, end: (n + 1) * size}
	if all > 0 {
		g.end = min(g.end, all)
	}
	return g
}

// counted implements shared: the state has it.
func (a *alone) counted(context.Context, *group, *State) error { return nil }

// leave implements shared.
func (a *alone) leave(context.Context, *group) error { return nil }

// refresh implements shared.
func (a *alone) refresh(context.Context) error { return nil }

// finish implements shared.
func (a *alone) finish(context.Context) error { return nil }

// nth implements shared.
func (a *alone) nth(_ context.Context, key, _ string) (int, error) { return a.state.Reduced[key], nil }

// place implements shared.
func (a *alone) place(_ context.Context, name string, n int, b *Bug, files map[string]string) (*Bug, error) {
	folder := a.free(name, n)
	if b != nil {
		b.Folder = folder
		if err := b.in(files); err != nil {
			return nil, err
		}
		a.kept = append(a.kept, b)
	}
	a.write(pendingFolder{folder, files})
	return b, nil
}

// changed implements shared.
func (a *alone) changed(_ context.Context, b *Bug) error { return a.rewrite(b) }

// in puts the bug among its files.
func (b *Bug) in(files map[string]string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	files[bugFile] = string(text) + "\n"
	return err
}
