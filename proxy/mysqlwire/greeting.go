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

// flavor is the server's product.
func (g *greeting) flavor() dialect.Flavor { return dialect.FlavorOf(g.version) }

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
