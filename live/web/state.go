package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"wirecheck/history"
	"wirecheck/live"
	"wirecheck/oracle/isolation"
	"wirecheck/product"
	"wirecheck/report/page"
)

// What the page lists at most.
const (
	maxSessions = 200
	maxTables   = 200
	maxReasons  = 30
)

// live is what the page shows of the proxy.
func (s *Server) live(status live.Status) *page.Live {
	now, c, p := s.o.Now(), status.Coverage, status.Pace
	l := &page.Live{SessionCount: len(status.Sessions)}
	fact := func(name, format string, values ...any) {
		l.Facts = append(l.Facts, page.Fact{Name: name, Value: fmt.Sprintf(format, values...)})
	}
	fact("running for", "%v", now.Sub(s.began).Round(time.Second))
	fact("sessions", "%d", len(status.Sessions))
	fact("open transactions", "%d", c.Unfinished)
	fact("transactions", "%d", c.Transactions)
	if n := c.Statements(); n > 0 {
		fact("seen exactly", "%d of %d statements", c.Exact, n)
	}
	if p.Events > 0 {
		fact("judging adds", "%v on average, %v at most", mean(p.Judged, p.Events), p.Most.Round(time.Microsecond))
		fact("of it, waiting for others", "%v", mean(p.Waited, p.Events))
	}
	fact("transactions remembered", "%d", status.Kept)
	if s := status.Publishing; s != nil {
		fact("published", "%d events; %d wait, %d were lost", s.Published, s.Waiting, s.Lost)
	}
	if h := status.Heard; h.Told+h.Ended+status.NotHeard > 0 {
		fact("warnings of collect", "for %d sessions; %d had ended; %d messages were none", h.Told, h.Ended, status.NotHeard)
	}
	for _, o := range status.Open {
		l.Open = append(l.Open, page.OpenTransaction{
			Session: o.Session.Session, Who: who(&o.Session), Level: product.Of(o.Session.Engine).LevelTitle(o.Level), Since: ago(now, o.Since), Statements: o.Statements, SQL: o.SQL,
		})
	}
	for i := range status.Sessions[:min(len(status.Sessions), maxSessions)] {
		e := &status.Sessions[i]
		l.Sessions = append(l.Sessions, page.Session{Session: e.Session, Who: who(e), Server: strings.TrimSpace(product.Of(e.Engine).Title + " " + e.Server), Since: ago(now, e.At)})
	}
	for _, t := range status.Tables[:min(len(status.Tables), maxTables)] {
		l.Tables = append(l.Tables, page.Table(t))
	}
	l.Reasons = reasons(c)
	if c.Exact < c.Statements() && !s.o.Explained {
		l.Reasons = append(l.Reasons, page.Reason{Why: "--explain-coverage lists the reasons of statements that were not seen exactly", N: c.Statements() - c.Exact})
	}
	return l
}

// reasons are those for which statements were not seen exactly, or their conditions not judged, the most frequent first.
func reasons(c isolation.Coverage) (list []page.Reason) {
	count := map[string]int{}
	for _, lost := range c.Lost {
		count[cmp.Or(lost.Why, "no reason was recorded")] += lost.Count
	}
	for why, n := range c.Unread {
		count["the condition was not judged: "+why] += n
	}
	for _, why := range slices.Sorted(maps.Keys(count)) {
		if count[why] > 0 {
			list = append(list, page.Reason{Why: why, N: count[why]})
		}
	}
	slices.SortStableFunc(list, func(a, b page.Reason) int { return b.N - a.N })
	return list[:min(len(list), maxReasons)]
}

func who(e *history.Event) string {
	var parts []string
	for _, s := range []string{e.Client, e.User, e.Database} {
		if s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

func ago(now time.Time, at int64) string {
	if at == 0 {
		return ""
	}
	return max(0, now.Sub(time.Unix(0, at))).Round(time.Second).String()
}

func mean(sum time.Duration, n uint64) time.Duration {
	return (sum / time.Duration(n)).Round(100 * time.Nanosecond)
}
