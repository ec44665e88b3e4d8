package mysqlwire

import (
	"bytes"
	"encoding/binary"
)

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
// them all the same must not get them. Other bits concern only the client and the server.
func dropCaps(b []byte, drop uint64) {
	caps, _ := capsOf(b)
	binary.LittleEndian.PutUint32(b, uint32(caps&^drop))
	if caps&clientMySQL == 0 {
		binary.LittleEndian.PutUint32(b[responseFixed-4:], uint32((caps&^drop)>>32))
	}
}

// parseLogin reads as much of a login as the history wants. The server judges what is malformed beyond that.
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
