package replay

import (
	"strings"

	"wirecheck/trace"
)

// WithoutTags is a statement without the comments in which its application tells where it comes from; those that the server reads (hints)
// and others stay.
func WithoutTags(sql string, d trace.Dialect) string {
	if !strings.Contains(sql, "/*") {
		return sql
	}
	var b strings.Builder
	for t := range trace.Tokens(sql, d) {
		if t.Kind != trace.TokenComment || trace.ParseTags(t.Text, d) == nil {
			b.WriteString(t.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// Route picks those of an application's tags that people know a request by: all but identifiers of one trace and versions of libraries.
func Route(tags []trace.Tag) (some []trace.Tag) {
	for _, t := range tags {
		switch strings.ToLower(t.Key) {
		case "framework", "db_driver", "db_driver_version", "tracestate":
			continue
		case "traceparent":
			if id := requestOf([]trace.Tag{t}); id != "" {
				t.Value = shortID(id)
			}
		}
		some = append(some, t)
	}
	return some
}

// shortID leaves of a long identifier what tells it from others: its end.
func shortID(id string) string {
	const most = 12
	if len(id) <= most {
		return id
	}
	return "..." + id[len(id)-most:]
}
