package mysqlwire

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
)

// Capabilities that go-mysql does not name (MariaDB Knowledge Base, "Connection", capabilities; MySQL manual, "Group
// Capability Flags").
const (
	capOptionalMetadata = 1 << 25 // CLIENT_OPTIONAL_RESULTSET_METADATA
	capZstd             = 1 << 26 // CLIENT_ZSTD_COMPRESSION_ALGORITHM
	capQueryAttributes  = 1 << 27 // CLIENT_QUERY_ATTRIBUTES

	// MariaDB's own, in the upper half of the 64 bits.
	capProgress         = 1 << 32
	capBulk             = 1 << 34
	capExtendedMetadata = 1 << 35
	capCacheMetadata    = 1 << 36
)

// capFollowed are the capabilities that a session which is understood may have with the server. Compression would hide the packets (compressed is the
// client's own); query attributes and optional metadata change the form of packets and exist to be chosen, so that not offering them
// is what an older server does. MariaDB's COM_MULTI was never released, its bulk unit results (11.5) are left out.
const capFollowed = (1<<32-1)&^(uint64(mysql.CLIENT_COMPRESS)|capOptionalMetadata|capZstd|capQueryAttributes) |
	capProgress | capBulk | capExtendedMetadata | capCacheMetadata

// Bits of the server's status (MySQL manual, "SERVER_STATUS_flags_enum").
const (
	statusInTrans     = mysql.SERVER_STATUS_IN_TRANS
	statusAutocommit  = mysql.SERVER_STATUS_AUTOCOMMIT
	statusMoreResults = mysql.SERVER_MORE_RESULTS_EXISTS
	statusCursor      = mysql.SERVER_STATUS_CURSOR_EXISTS
	statusMetadata    = mysql.SERVER_STATUS_METADATA_CHANGED
)

// First bytes of answers.
const (
	markOK    = 0x00
	markInfo  = 0xfb // LOCAL INFILE request; NULL in a text row
	markEOF   = 0xfe
	markERR   = 0xff
	packetEOF = 9 // an EOF packet is shorter
)

// Numbers of errors.
const (
	deadlock = "1213"  // ER_LOCK_DEADLOCK
	progress = "65535" // MariaDB's progress reports
)

var errMalformed = errors.New("malformed packet")

// lenenc reads a length-encoded integer and returns it and what follows.
func lenenc(b []byte) (uint64, []byte, error) {
	if len(b) == 0 {
		return 0, nil, errMalformed
	}
	n := 0
	switch b[0] {
	default:
		return uint64(b[0]), b[1:], nil
	case 0xfc:
		n = 2
	case 0xfd:
		n = 3
	case 0xfe:
		n = 8
	case 0xfb, 0xff:
		return 0, nil, errMalformed
	}
	if len(b) < 1+n {
		return 0, nil, errMalformed
	}
	var v uint64
	for i := n; i > 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v, b[1+n:], nil
}

// lenencString reads a length-encoded string.
func lenencString(b []byte) (s, rest []byte, err error) {
	n, rest, err := lenenc(b)
	if err != nil || n > uint64(len(rest)) {
		return nil, nil, errMalformed
	}
	return rest[:n], rest[n:], nil
}

func appendLenencString[T string | []byte](to []byte, s T) []byte {
	to = append(to, mysql.PutLengthEncodedInt(uint64(len(s)))...)
	return append(to, s...)
}

// okPacket is where the parts of an OK packet lie (MySQL manual, "OK_Packet").
type okPacket struct {
	affected uint64
	insertID uint64
	status   uint16
	warnings uint16
	at       int // offset of status in the packet; the warnings follow
}

func parseOK(b []byte) (okPacket, error) {
	var ok okPacket
	var err error
	rest := b[min(1, len(b)):]
	if ok.affected, rest, err = lenenc(rest); err != nil {
		return ok, err
	}
	if ok.insertID, rest, err = lenenc(rest); err != nil {
		return ok, err
	}
	if len(rest) < 4 {
		return ok, errMalformed
	}
	ok.at = len(b) - len(rest)
	ok.status = binary.LittleEndian.Uint16(rest)
	ok.warnings = binary.LittleEndian.Uint16(rest[2:])
	return ok, nil
}

// terminator is the OK b as the end of a result.
func (ok okPacket) terminator(b []byte, rowless bool) terminator {
	return terminator{b, ok.status, ok.warnings, ok.at, ok.at + 2, rowless}
}

// parseERR reads an ERR packet.
func parseERR(b []byte) *history.ServerError {
	if len(b) < 3 {
		return &history.ServerError{Code: "0", Message: "malformed error packet"}
	}
	e := &history.ServerError{Code: utoa(uint64(binary.LittleEndian.Uint16(b[1:])))}
	rest := b[3:]
	if len(rest) >= 6 && rest[0] == '#' {
		e.SQLState, rest = string(rest[1:6]), rest[6:]
	}
	e.Message = string(rest)
	return e
}

// encodeERR makes an ERR packet. Before the client said that it speaks the 4.1 protocol there is no SQLSTATE in it.
func encodeERR(e *history.ServerError, withState bool) []byte {
	code, _ := strconv.ParseUint(e.Code, 10, 16)
	b := binary.LittleEndian.AppendUint16([]byte{markERR}, uint16(code))
	if withState {
		b = append(b, '#')
		b = append(b, e.SQLState...)
	}
	return append(b, e.Message...)
}

// The errors that the proxy itself reports have numbers of the server's: in a packet, MariaDB's client library takes a number
// of its own (2000 to 2999) for a malformed packet. errorUnreachable has that of ER_CONNECT_TO_FOREIGN_DATA_SOURCE.
func errorUnreachable(why string) *history.ServerError {
	return &history.ServerError{Code: "1429", SQLState: "HY000", Message: "Can't connect to the server (wirecheck: " + why + ")"}
}

func errorOrder() *history.ServerError {
	return &history.ServerError{Code: utoa(mysql.ER_NET_PACKETS_OUT_OF_ORDER), SQLState: "08S01", Message: "Got packets out of order"}
}

// errorMalformed is ER_MALFORMED_PACKET.
func errorMalformed() *history.ServerError {
	return &history.ServerError{Code: "1835", SQLState: "HY000", Message: "Malformed communication packet (wirecheck: the server's answer was not understood)"}
}

// errorUnmarked is ER_UNKNOWN_ERROR.
func errorUnmarked(why string) *history.ServerError {
	return &history.ServerError{Code: "1105", SQLState: "HY000", Message: "The statement could not be marked (wirecheck: " + why + ")"}
}

func errorShutdown() *history.ServerError {
	return &history.ServerError{Code: utoa(mysql.ER_SERVER_SHUTDOWN), SQLState: "08S01", Message: "Server shutdown in progress"}
}
