package web

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"wirecheck/live"
)

// metrics gives Prometheus the proxy's counters when it asks.
type metrics struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("wirecheck_"+name, help, labels, nil)
}

var (
	findingsDesc     = desc("findings_total", "Findings, repeats included.", "kind", "class", "name", "level", "table")
	statementsDesc   = desc("statements_total", "Statements that touch tables, by how wirecheck saw them.", "coverage")
	failedDesc       = desc("statements_failed_total", "Statements that the server refused.")
	conditionsDesc   = desc("conditions_total", "Statements that chose rows by a condition, by whether it was judged.", "judged")
	transactionsDesc = desc("transactions_total", "Transactions that have ended, by outcome.", "outcome")
	openDesc         = desc("transactions_open", "Transactions that have not ended.")
	keptDesc         = desc("transactions_kept", "Transactions in the checker's memory.")
	sessionsDesc     = desc("sessions", "Sessions that are open and observed.")
	rowsDesc         = desc("row_versions_total", "Row versions that statements read and wrote, by table and how wirecheck saw them.", "table", "coverage")
	judgingDesc      = desc("judging_seconds", "What judging adds to the time of a statement.")
	lagDesc          = desc("judging_wait_seconds_total", "Time that events waited for those before them to be judged.")
	droppedDesc      = desc("history_dropped_total", "Events that the history lacks, because its file could not be written.")
	publishedDesc    = desc("published_total", "Events that NATS has taken for wirecheck collect.")
	waitingDesc      = desc("publish_waiting", "Events that wait for NATS.")
	unpublishedDesc  = desc("publish_lost_total", "Events that were not published, because too many waited for NATS.")
	brokenDesc       = desc("judging_broken", "1 if judging has ended because of a defect of wirecheck.")
)

// Describe implements prometheus.Collector.
func (m metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{findingsDesc, statementsDesc, failedDesc, conditionsDesc, transactionsDesc, openDesc, keptDesc, sessionsDesc, rowsDesc, judgingDesc, lagDesc, droppedDesc, publishedDesc, waitingDesc, unpublishedDesc, brokenDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(to chan<- prometheus.Metric) {
	status := m.s.now()
	c := status.Coverage
	count := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, n int) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n))
	}
	for labels, n := range findings(status) {
		count(findingsDesc, n, labels[:]...)
	}
	count(statementsDesc, c.Exact, "exact")
	count(statementsDesc, c.Approximate, "approximate")
	count(statementsDesc, c.Opaque, "opaque")
	count(failedDesc, c.Failed)
	count(conditionsDesc, c.Predicates, "yes")
	count(conditionsDesc, c.Unevaluated(), "no")
	count(transactionsDesc, c.Committed, "committed")
	count(transactionsDesc, c.Aborted, "aborted")
	count(transactionsDesc, c.Unknown, "unknown")
	gauge(openDesc, c.Unfinished)
	gauge(keptDesc, status.Kept)
	gauge(sessionsDesc, len(status.Sessions))
	for _, t := range status.Tables[:min(len(status.Tables), maxTables)] {
		count(rowsDesc, t.Exact, label(t.Table), "exact")
		count(rowsDesc, t.Approximate, label(t.Table), "approximate")
	}
	p := status.Pace
	buckets := map[float64]uint64{}
	for i, bound := range live.PaceBounds {
		buckets[bound.Seconds()] = p.Below[i]
	}
	to <- prometheus.MustNewConstHistogram(judgingDesc, p.Events, p.Judged.Seconds(), buckets)
	to <- prometheus.MustNewConstMetric(lagDesc, prometheus.CounterValue, p.Waited.Seconds())
	count(droppedDesc, status.Dropped)
	if s := status.Publishing; s != nil {
		count(publishedDesc, int(s.Published))
		gauge(waitingDesc, int(s.Waiting))
		count(unpublishedDesc, int(s.Lost))
	}
	broken := 0
	if c.Broken != "" {
		broken = 1
	}
	gauge(brokenDesc, broken)
}

// findings counts by labels. Of very many kinds of findings the last ones share one table's name, so that the number of series is bounded.
func findings(status live.Status) map[[5]string]int {
	n := map[[5]string]int{}
	for i := range status.Findings {
		f := &status.Findings[i]
		labels := [5]string{string(f.Kind), string(f.Class), f.Name, f.Level, label(strings.Join(f.Tables, ","))}
		if _, ok := n[labels]; !ok && len(n) >= maxFindings {
			labels[4] = "others"
		}
		n[labels] += max(f.Seen, 1)
	}
	return n
}

// label is a name as Prometheus takes it: it refuses a text that is not UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "?") }
