package wire

import (
	"encoding/binary"
	"strings"
	"testing"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

// pgMsg makes a message of PostgreSQL's protocol.
func pgMsg(kind byte, body string) string {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))
	return string(b) + body
}

// myMsg makes a packet of the MySQL family's protocol.
func myMsg(seq byte, body string) string {
	return string([]byte{byte(len(body)), byte(len(body) >> 8), 0, seq}) + body
}

var (
	pgBindExecute = pgMsg('B', "\x00s1\x00\x00\x00\x00\x01\x00\x00\x00\x017\x00\x00") + pgMsg('E', "\x00\x00\x00\x00\x00") + pgMsg('S', "")
	pgRowAnswer   = pgMsg('2', "") + pgMsg('D', "\x00\x01\x00\x00\x00\x015") + pgMsg('C', "SELECT 1\x00") + pgMsg('Z', "T")
)

// TestRecognise tells requests and answers of both protocols, which may be joined anywhere, from what only resembles them.
func TestRecognise(t *testing.T) {
	for name, tt := range map[string]struct {
		data                     string
		pgClient, pgServer, mine bool
	}{
		"query":               {pgMsg('Q', "SELECT 1\x00"), true, false, false},
		"bind, execute, sync": {pgBindExecute, true, false, false},
		"answer":              {pgRowAnswer, false, true, false},
		"ready alone":         {pgMsg('Z', "I"), false, false, false},
		"half a query":        {pgMsg('Q', "SELECT 1\x00")[:8], false, false, false},
		"COM_QUERY":           {myMsg(0, "\x03SELECT 1"), false, false, true},
		"COM_STMT_EXECUTE":    {myMsg(0, "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"), false, false, true},
		"OK":                  {myMsg(1, "\x00\x00\x00\x02\x00\x00\x00"), false, false, false},
		"http":                {"GET / HTTP/1.1\r\n\r\n", false, false, false},
		"tls":                 {"\x16\x03\x01\x00\x05hello", false, false, false},
		"zeros":               {strings.Repeat("\x00", 20), false, false, false},
	} {
		b := []byte(tt.data)
		if got := Postgres.Request(b) == Surely; got != tt.pgClient {
			t.Errorf("%s: PostgreSQL's client: %v", name, got)
		}
		if got := Postgres.Answer(b) == Surely; got != tt.pgServer {
			t.Errorf("%s: PostgreSQL's server: %v", name, got)
		}
		if got := MySQL.Request(b) == Surely; got != tt.mine {
			t.Errorf("%s: MySQL's client: %v", name, got)
		}
	}
}

// FuzzTalk gives the decoders of both protocols anything, in pieces.
func FuzzTalk(f *testing.F) {
	f.Add(byte(0), []byte("Q\x00\x00\x00\x0dSELECT 1\x00"), []byte("C\x00\x00\x00\x0dSELECT 1\x00Z\x00\x00\x00\x05I"), byte(3))
	f.Add(byte(3), []byte("\x09\x00\x00\x00\x03SELECT 1"), []byte("\x01\x00\x00\x01\x01"), byte(5))
	f.Fuzz(func(t *testing.T, kind byte, client, server []byte, size byte) {
		o := source.Options{Out: func(r *trace.Record) error {
			trace.AppendText(nil, r, trace.TextOptions{Rows: 2})
			return nil
		}}
		d := NewDecoder(Postgres+Protocol(kind&1), &Output{Sink: source.NewSink(o)}, Connection{Session: 1, At: 1, Whole: kind&2 == 0, Request: true})
		for len(client)+len(server) > 0 {
			n := min(len(client), int(size)+1)
			if err := d.FromClient(client[:n], 1); err != nil {
				t.Fatal(err)
			}
			client = client[n:]
			n = min(len(server), int(size)+1)
			if err := d.FromServer(server[:n], 2); err != nil {
				t.Fatal(err)
			}
			server = server[n:]
		}
		if err := d.Close(3, "quit"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNumericIsBounded: a numeric's text is not much longer than its bytes, alone and in an array; one as long as a double's is read.
func TestNumericIsBounded(t *testing.T) {
	numeric := func(digits, weight, scale int) []byte {
		var b []byte
		for _, n := range []int{digits, weight, 0, scale} {
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		}
		for range digits {
			b = binary.BigEndian.AppendUint16(b, 1)
		}
		return b
	}
	array := func(element []byte) []byte {
		b := []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1700 >> 8, 1700 & 0xff, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(b[20:], uint32(len(element)))
		return append(b, element...)
	}
	for _, tt := range []struct {
		value  []byte
		length int // of its text; 0: it is not read
	}{{numeric(1, 0x7fff, 0), 0}, {numeric(0, 0x7fff, 0), 0}, {numeric(0, 0, 0x3fff), 0}, {numeric(1, 77, 0), 309}, {numeric(1, -77, 308), 310}, {numeric(1000, 999, 0), 3997}} {
		text, ok := PostgresText(tt.value, 1, 1700)
		list, whole := PostgresText(array(tt.value), 1, 1231)
		if ok != (tt.length > 0) || ok && len(text) != tt.length || whole != ok || ok && list != "{"+text+"}" {
			t.Errorf("%x: %d bytes, %v; in an array %d, %v; want %d", tt.value[:8], len(text), ok, len(list), whole, tt.length)
		}
	}
}
