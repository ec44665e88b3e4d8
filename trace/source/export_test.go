package source

import (
	"context"
	"io"
)

// ImportStream imports a stream of one format.
func ImportStream(ctx context.Context, f Format, in io.Reader, o Options) (*Report, error) {
	f.Detect = func([]byte) bool { return true }
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	im := &importer{ctx: ctx, formats: []Format{f}, open: map[string]int{}, o: o}
	if err := im.stream(in, "x"); err != nil {
		return nil, err
	}
	if len(im.logs) == 0 {
		return &Report{}, nil // an empty file
	}
	return im.logs[0].sink.Report, im.logs[0].source.Finish()
}

// FollowSessions bounds how many sessions are followed at a time.
func (o *Options) FollowSessions(n int) { o.sessions = n }
