package flow

import (
	"strings"

	"wirecheck/history/prose"
	"wirecheck/trace"
)

// RequestTags are the keys by which tracing libraries name a request: sqlcommenter's, then those that Rails, Django and others write.
var RequestTags = []string{"traceparent", "request_id", "request-id", "x-request-id", "correlation_id", "trace_id"}

// Request names the request that a statement belongs to by the first of these keys that it has; empty if its tags do not tell.
func Request(tags []trace.Tag, keys []string) string {
	for _, key := range keys {
		for _, t := range tags {
			if !strings.EqualFold(t.Key, key) || t.Value == "" {
				continue
			}
			if parts := strings.Split(t.Value, "-"); strings.EqualFold(key, "traceparent") && len(parts) == 4 {
				return parts[1] // the trace: version-trace-span-flags (W3C Trace Context, 3.2)
			}
			return t.Value
		}
	}
	return ""
}

// Route picks those of an application's tags that people know a request by: all but identifiers of one trace and versions of libraries.
func Route(tags []trace.Tag) (some []trace.Tag) {
	for _, t := range tags {
		switch strings.ToLower(t.Key) {
		case "framework", "db_driver", "db_driver_version", "tracestate":
			continue
		case "traceparent":
			if id := Request([]trace.Tag{t}, RequestTags); id != "" {
				t.Value = prose.Tail(id, 12)
			}
		}
		some = append(some, t)
	}
	return some
}
