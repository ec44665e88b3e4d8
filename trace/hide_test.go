package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/history"
)

// TestWriterHides: no password gets into a file, however it came to the server; what is none does.
func TestWriterHides(t *testing.T) {
	text := func(s ...string) []Param {
		var list []Param
		for _, v := range s {
			list = append(list, Param{Value: v})
		}
		return list
	}
	failed := &answer.Error{Code: "1064", Message: "near 'hush' at line 1", Detail: "hush"}
	rows := func(name string, values ...string) []Result {
		res := Result{Columns: []answer.Column{{Name: name}}, Digest: "digest"}
		for _, v := range values {
			res.Rows = append(res.Rows, []Value{{Text: v}})
		}
		return []Result{res}
	}
	for _, product := range []string{"mysql", "postgres"} {
		records := []*Record{
			{Kind: KindSession, Session: 1, Open: &Session{Product: product}},
			{Statement: &Statement{SQL: "SET PASSWORD = ?", Protocol: ProtocolPrepared, Params: text("hush")}},
			{Statement: &Statement{SQL: "EXECUTE s", Prepared: "ALTER USER a IDENTIFIED BY 'hush'", Protocol: ProtocolExecute, Error: failed}},
			{Statement: &Statement{SQL: "SHOW WARNINGS", Results: rows("Message", "near 'hush'")}},
			{Statement: &Statement{SQL: "show /* again */ errors", Results: rows("Message", "near 'hush'")}},
			{Statement: &Statement{SQL: "ALTER USER a IDENTIFIED BY RANDOM PASSWORD", Results: rows("generated password", "hush")}},
			{Statement: &Statement{SQL: "SELECT f(?)", Params: text("host=h password=hush", "keep 1")}},
			{Statement: &Statement{SQL: "SELECT v FROM t", Results: rows("v", "keep 2", "mysql://u:hush@h")}},
			{Kind: KindHistory, History: &history.Event{Kind: history.EventStmt, Session: 1, Txn: 1, N: 1, SQL: "SET PASSWORD = 'hush'", Error: failed}},
			{Statement: &Statement{SQL: "UPDATE users SET password = ?", Params: text("keep 3"), Error: &answer.Error{Code: "1", Message: "keep 4"}}},
			{Statement: &Statement{SQL: "SHOW WARNINGS", Results: rows("Message", "keep 5")}},
		}
		var file bytes.Buffer
		w, err := NewWriter(&file, Header{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.Session = 1; r.Kind == 0 {
				r.Kind = KindStatement
			}
			if r.Statement != nil && product == "postgres" {
				r.Statement.SQL = strings.ReplaceAll(r.Statement.SQL, "?", "$1")
			}
			before, _ := json.Marshal(r)
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
			if after, _ := json.Marshal(r); !bytes.Equal(before, after) {
				t.Errorf("Write changed the caller's record:\n%s\n%s", before, after)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(&file, "x", ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for {
			var rec Record
			if err := r.Next(&rec); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			line, _ := json.Marshal(rec)
			got.Write(append(line, '\n'))
		}
		if strings.Contains(got.String(), "hush") {
			t.Errorf("%s:\n%s", product, got.String())
		}
		for _, keep := range []string{"keep 1", "keep 2", "keep 3", "keep 4", "keep 5", "1064", "host=h", "digest"} {
			if !strings.Contains(got.String(), keep) {
				t.Errorf("%s: %s is missing:\n%s", product, keep, got.String())
			}
		}
	}
}
