package mysqlwire

import (
	"bytes"
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	dialect "wirecheck/rewrite/mysql"
)

// greeting is the server's first packet (MySQL manual, "Protocol::HandshakeV10"; the reserved bytes hold MariaDB's own
// capabilities if the server does not set CLIENT_MYSQL, MariaDB Knowledge Base, "Connection").
type greeting struct {
	raw     []byte
	version string
	thread  uint32
	caps    uint64
	lower   int // offset of the lower half of the capabilities
}

const (
	handshakeV10   = 10
	greetingFixed  = 4 + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 10 // thread id to reserved bytes
	clientMySQL    = uint64(mysql.CLIENT_LONG_PASSWORD) // CLIENT_MYSQL in MariaDB's words
	responseFixed  = 4 + 4 + 1 + 23
	protocol41     = uint64(mysql.CLIENT_PROTOCOL_41)
	deprecateEOF   = uint64(mysql.CLIENT_DEPRECATE_EOF)
	clientSSL      = uint64(mysql.CLIENT_SSL)
	lenencAuthData = uint64(mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
	secureAuth     = uint64(mysql.CLIENT_SECURE_CONNECTION)
	connectWithDB  = uint64(mysql.CLIENT_CONNECT_WITH_DB)
	pluginAuth     = uint64(mysql.CLIENT_PLUGIN_AUTH)
	connectAttrs   = uint64(mysql.CLIENT_CONNECT_ATTRS)
)

// parseGreeting keeps a copy of b. It fails on what is not the protocol of version 10, with the capabilities' upper half.
func parseGreeting(b []byte) (*greeting, error) {
	g := &greeting{raw: bytes.Clone(b)}
	if len(b) == 0 || b[0] != handshakeV10 {
		return nil, errMalformed
	}
	end := bytes.IndexByte(b[1:], 0)
	if end < 0 || len(b) < 1+end+1+greetingFixed {
		return nil, errMalformed
	}
	g.version = string(b[1 : 1+end])
	at := 1 + end + 1
	g.thread = binary.LittleEndian.Uint32(b[at:])
	g.lower = at + 4 + 8 + 1
	g.caps = uint64(binary.LittleEndian.Uint16(b[g.lower:])) | uint64(binary.LittleEndian.Uint16(b[g.lower+5:]))<<16
	if g.mariadb() {
		g.caps |= uint64(binary.LittleEndian.Uint32(b[g.extended():])) << 32
	}
	return g, nil
}

// mariadb reports whether the reserved bytes hold further capabilities.
func (g *greeting) mariadb() bool {
	return uint64(binary.LittleEndian.Uint16(g.raw[g.lower:]))&clientMySQL == 0
}

// extended is the offset of MariaDB's own capabilities: the last four reserved bytes.
func (g *greeting) extended() int { return g.lower + 2 + 1 + 2 + 2 + 1 + 6 }

// flavor is the engine, as history.Event.Engine names it.
func (g *greeting) flavor() string {
	return string(dialect.FlavorOf(g.version))
}

// with is the greeting for the client, with other capabilities.
func (g *greeting) with(caps uint64) []byte {
	b := bytes.Clone(g.raw)
	binary.LittleEndian.PutUint16(b[g.lower:], uint16(caps))
	binary.LittleEndian.PutUint16(b[g.lower+5:], uint16(caps>>16))
	if g.mariadb() {
		binary.LittleEndian.PutUint32(b[g.extended():], uint32(caps>>32))
	}
	return b
}

// login is the client's answer to the greeting (MySQL manual, "Protocol::HandshakeResponse41").
type login struct {
	raw      []byte
	caps     uint64
	user     string
	database string
	plugin   string
	program  string // program_name or _client_name among the connection attributes
}

// capsOf reads a login's or SSLRequest's capabilities. ok is false for the protocol before 4.1, whose packet has another
// form.
func capsOf(b []byte) (caps uint64, ok bool) {
	if len(b) < 2 || uint64(binary.LittleEndian.Uint16(b))&protocol41 == 0 || len(b) < responseFixed {
		return 0, false
	}
	caps = uint64(binary.LittleEndian.Uint32(b))
	if caps&clientMySQL == 0 { // a MariaDB client that tells its own capabilities
		caps |= uint64(binary.LittleEndian.Uint32(b[responseFixed-4:])) << 32
	}
	return caps, true
}

// dropCaps takes capabilities that the server has and we did not offer out of a login or SSLRequest: a client that sets
// them all the same must not get them. Other bits are between the client and the server.
func dropCaps(b []byte, drop uint64) {
	caps, _ := capsOf(b)
	binary.LittleEndian.PutUint32(b, uint32(caps&^drop))
	if caps&clientMySQL == 0 {
		binary.LittleEndian.PutUint32(b[responseFixed-4:], uint32((caps&^drop)>>32))
	}
}

// parseLogin understands as much of a login as the history wants. What is malformed there is left to the server.
func parseLogin(b []byte) (*login, error) {
	caps, ok := capsOf(b)
	if !ok {
		return nil, errMalformed
	}
	l := &login{raw: b, caps: caps}
	user, rest, ok := cutZero(b[responseFixed:])
	if !ok {
		return nil, errMalformed
	}
	l.user = user
	var err error
	switch {
	case caps&lenencAuthData != 0:
		_, rest, err = lenencString(rest)
	case caps&secureAuth != 0:
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return nil, errMalformed
		}
		rest = rest[1+int(rest[0]):]
	default:
		_, rest, _ = cutZero(rest)
	}
	if err != nil {
		return nil, err
	}
	l.tail(rest)
	return l, nil
}

// tail reads what follows the authentication data: it is optional in practice, whatever the capabilities say.
func (l *login) tail(rest []byte) {
	if l.caps&connectWithDB != 0 {
		l.database, rest, _ = cutZero(rest)
	}
	if l.caps&pluginAuth != 0 {
		l.plugin, rest, _ = cutZero(rest)
	}
	if l.caps&connectAttrs != 0 {
		l.program = programName(rest)
	}
}

func programName(b []byte) string {
	attrs, _, err := lenencString(b)
	if err != nil {
		return ""
	}
	var name string
	for len(attrs) > 0 {
		var key, value []byte
		if key, attrs, err = lenencString(attrs); err != nil {
			return name
		}
		if value, attrs, err = lenencString(attrs); err != nil {
			return name
		}
		switch string(key) {
		case "program_name":
			return string(value)
		case "_client_name":
			name = string(value)
		}
	}
	return name
}

// cutZero cuts a zero-terminated string. A string that the end of the packet ends counts, but is not ok.
func cutZero(b []byte) (s string, rest []byte, ok bool) {
	before, after, ok := bytes.Cut(b, []byte{0})
	return string(before), after, ok
}
