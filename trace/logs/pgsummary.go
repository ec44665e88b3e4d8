package logs

import (
	"wirecheck/history/prose"
	"wirecheck/trace/source"
)

// Finish hands on what is left and says what the log does not show.
func (l *pgLog) Finish() error {
	if err := l.flushAll(); err != nil {
		return err
	}
	r := l.out.Report
	if l.audits > 0 {
		l.auditSummary(r)
	} else {
		l.timesSummary(r)
	}
	if r.NoParams > 0 {
		r.Lacks("parameters of some statements", "log_parameter_max_length = -1, log_parameter_max_length_on_error = -1"+l.besides)
	}
	r.Lacks("results, and how many rows were read and written", "a packet capture tells them")
	r.Lacks("isolation levels that sessions did not ask for by name", "replay with the server's default_transaction_isolation")
	r.Lacks("data of COPY, large objects and function calls", "")
	if r.Count("connection messages") == 0 && r.Sessions > 0 {
		r.Lacks("when sessions began and ended", "log_connections = on, log_disconnections = on")
	}
	if r.Waits == 0 {
		r.Lacks("which sessions waited for a lock, if any did", "log_lock_waits = on, deadlock_timeout = 10ms")
	}
	if r.Lost > 0 {
		r.Lacks("the text of statements that failed", "log_min_error_statement = error (not \"log\", which leaves errors out)")
	}
	for _, z := range l.clock.unknown {
		r.Note("the time zone %s is not known here; its times were read as UTC. log_timezone = UTC avoids that", z)
	}
	if l.foreign > 0 {
		r.Note("%s to sessions not in English and not understood: lc_messages = C", prose.Count(l.foreign, "message"))
	}
	if l.mixed > 0 {
		r.Note("%d times a session was there again after its process id had been another's, or after the server had been started again: this seems to be the log of several "+
			"servers in one. Import each server's by itself", l.mixed)
	}
	if !l.users && r.Sessions > 0 {
		r.Lacks("users and databases of sessions", "%u, %d in log_line_prefix, or csvlog")
	}
	return nil
}

func (l *pgLog) timesSummary(r *source.Report) {
	switch {
	case l.starts == 0 && l.ended == 0:
		r.Note("no statement was logged: log_statement = all, log_duration = on")
	case l.starts > 0 && l.ends == 0 && l.ended == 0:
		r.Lacks("when statements ended", "log_duration = on")
	case l.starts == 0:
		r.Lacks("in which order statements began, to less than a millisecond", "log_statement = all and log_duration = on in place of log_min_duration_statement")
		const long = 1_000_000
		if l.shortest >= long {
			r.Note("the shortest statement took %d ms: shorter ones may have been left out (log_min_duration_statement = 0)", l.shortest/1_000_000)
		}
	}
}
