package logs

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"wirecheck/trace/source"
)

// jsonLog reads PostgreSQL's jsonlog: one object a line (PostgreSQL manual, 20.8.5). The server writes texts in the database's encoding;
// one that is not UTF-8 cannot be read exactly.
type jsonLog struct{ *pgLog }

func newJSONLog(out *source.Sink) source.Reader { return &jsonLog{pgLog: newPgLog(out)} }

func isJSONLog(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`{"timestamp":"`)) || bytes.Contains(head, []byte("\n"+`{"timestamp":"`))
}

// jsonEntry has the keys that matter.
type jsonEntry struct {
	Timestamp   string `json:"timestamp"`
	User        string `json:"user"`
	Database    string `json:"dbname"`
	PID         int    `json:"pid"`
	Host        string `json:"remote_host"`
	Port        int    `json:"remote_port"`
	Session     string `json:"session_id"`
	Title       string `json:"ps"`
	VXID        string `json:"vxid"`
	XID         uint64 `json:"txid"`
	Severity    string `json:"error_severity"`
	State       string `json:"state_code"`
	Message     string `json:"message"`
	Detail      string `json:"detail"`
	Context     string `json:"context"`
	Statement   string `json:"statement"`
	Application string `json:"application_name"`
	Backend     string `json:"backend_type"`
}

// Read reads the next file.
func (l *jsonLog) Read(in *source.Input) error {
	return in.Each(func(line []byte, long bool) error {
		if long {
			l.out.Unknown(in.N, "the line is too long", line)
			return nil
		}
		return l.line(in.N, line)
	})
}

func (l *jsonLog) line(n int, line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	var j jsonEntry
	if err := json.Unmarshal(line, &j); err != nil {
		l.out.Unknown(n, "this is not a JSON object of a jsonlog", line)
		return nil
	}
	at, ok := l.clock.read(j.Timestamp)
	if !ok || j.Severity == "" {
		l.out.Unknown(n, "the keys are not those of a jsonlog", line)
		return nil
	}
	client := j.Host
	if j.Port != 0 {
		client += ":" + strconv.Itoa(j.Port)
	}
	return l.add(&pgEntry{
		line: n, at: at, user: j.User, db: j.Database, client: client, pid: strconv.Itoa(j.PID), session: j.Session, ps: j.Title, vxid: j.VXID,
		xid: j.XID, level: j.Severity, state: j.State, message: j.Message, detail: j.Detail, context: j.Context, query: j.Statement,
		app: j.Application, backend: j.Backend, lost: !utf8.Valid(line),
	})
}
