package pgwire

import (
	"strings"

	"github.com/jackc/pgproto3/v2"

	"wirecheck/history/prose"
	"wirecheck/proxy/record"
)

// maxDue bounds the warnings that wait for their client.
const maxDue = 100

// warn sends warnings as notices, if the client wants them. While it is not known whether it does, they wait for the next turn.
func (a *serverHalf) warn(ws []record.Warning) error {
	if a.silent() || len(ws) == 0 && len(a.due) == 0 {
		return nil
	}
	a.due = append(a.due, ws...)
	if len(a.due) > maxDue {
		a.due = a.due[len(a.due)-maxDue:]
	}
	known, wanted, ascii := a.environment.warnings()
	if !known {
		return nil
	}
	ws, a.due = a.due, nil
	if !wanted {
		return nil
	}
	for _, w := range ws {
		text, err := notice(w, ascii).Encode(nil)
		if err != nil {
			continue // longer than a message can be
		}
		if _, err := a.out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// notice makes the message for a warning. Its fields are those of a server's (manual, 55.8).
func notice(w record.Warning, ascii bool) *pgproto3.NoticeResponse {
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case r == 0:
				return -1
			case ascii && r >= 0x80: // the client would read it in another encoding
				return '?'
			}
			return r
		}, s)
	}
	return &pgproto3.NoticeResponse{
		Severity: "WARNING", SeverityUnlocalized: "WARNING", Code: w.SQLState,
		Message: clean(w.Message), Detail: clean(fit("DETAIL:  ", w.Detail)), Hint: clean(fit("HINT:  ", w.Hint)),
		SchemaName: clean(w.Schema), TableName: clean(w.Table), ConstraintName: clean(w.Finding),
	}
}

// fit breaks the sentences of a text so that psql, which puts label in front, shows them in 80 columns. Statements (indented) stay whole.
func fit(label, text string) string {
	lines := strings.Split(label+text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") {
			lines[i] = prose.Wrap(line, 80, "", "  ")
		}
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), label)
}
