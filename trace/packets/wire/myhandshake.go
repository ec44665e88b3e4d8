package wire

import (
	"strconv"
	"strings"

	"wirecheck/product"
	"wirecheck/trace"
)

// myHandshake is what both sides agree upon at login. It is empty if the login was not seen.
type myHandshake struct{ server, client uint32 } // capabilities

// both tells whether both sides have a capability.
func (h *myHandshake) both(capability uint32) bool { return h.server&h.client&capability != 0 }

// greeting reads the server's first packet. It may be a refusal in place of one (too many connections, and the like).
func (h *myHandshake) greeting(body []byte, info *trace.Session) bool {
	c := cursor{b: body}
	if c.byte() != 10 {
		return false
	}
	info.Version = c.text()
	info.Product = product.OfVersion(info.Version).Name
	if info.Product == "mariadb" {
		info.Version = strings.TrimPrefix(info.Version, "5.5.5-") // for replicas of old, which know no larger number
	}
	info.Backend = strconv.FormatUint(c.little(4), 10)
	c.bytes(9)
	caps := c.little(2)
	c.bytes(3)
	h.server = uint32(caps | c.little(2)<<16)
	return true
}

// login reads the client's answer. It may be a request for TLS in place of one.
func (h *myHandshake) login(body []byte, info *trace.Session) (tls bool) {
	c := cursor{b: body}
	h.client = uint32(c.little(4))
	c.bytes(28)
	if h.client&capSSL != 0 && len(body) <= 32 {
		return true
	}
	info.User = c.text()
	switch {
	case h.client&capLenencAuth != 0:
		c.lenencBytes()
	case h.client&capSecure != 0:
		c.bytes(int(c.byte()))
	default:
		c.untilZero()
	}
	if h.client&capConnectDB != 0 {
		info.Database = c.text()
	}
	if h.client&capPluginAuth != 0 {
		c.text()
	}
	if h.client&capAttributes != 0 {
		connectAttributes(&c, info)
	}
	return false
}

func connectAttributes(c *cursor, info *trace.Session) {
	all, _ := c.lenencBytes()
	in := cursor{b: all}
	for len(in.b) > 0 && !in.bad {
		key, _ := in.lenencBytes()
		value, _ := in.lenencBytes()
		if s := string(key); s == "program_name" || s == "_client_name" && info.Application == "" {
			info.Application = string(value)
		}
	}
}

// Capabilities.
const (
	capCompress   = 1 << 5
	capSSL        = 1 << 11
	capConnectDB  = 1 << 3
	capAttributes = 1 << 20 // of the connection
	capLenencAuth = 1 << 21
	capSecure     = 1 << 15
	capPluginAuth = 1 << 19
	capZstd       = 1 << 26
	capQueryAttrs = 1 << 27
	capNoEOF      = 1 << 24
)
