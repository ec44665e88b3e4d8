// Package packets reads packet captures: it puts the segments of TCP connections into order and hands the bytes of both sides to the decoder of their
// protocol (trace/packets/wire).
package packets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"wirecheck/history/prose"
	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
	"wirecheck/trace/source"
)

// pcapLog reads packet captures (pcap, pcapng) of unencrypted traffic of both protocols. It looks at TCP only. What is in a connection is
// recognised by its bytes, not by its port, as servers may listen anywhere; ports only help where a connection was joined late.
type pcapLog struct {
	output  wire.Output
	conns   map[connKey]*conn
	order   []*conn // those in conns and some that are gone, in the order in which they were seen first
	servers map[netip.AddrPort]wire.Protocol
	links   map[layers.LinkType]*packetParser
	opaque  int // connections to usual ports, that make no sense
	gaps    int
	partial bool
}

// connKey is a connection: its two ends, the smaller one first.
type connKey struct{ a, b netip.AddrPort }

// maxConns bounds the connections that are followed at a time.
const maxConns = 1 << 16

// Format is the format of packet captures.
func Format() source.Format {
	return source.Format{Name: "pcap", Title: "packet capture", Unit: "packets", Detect: isPcap, Open: newPcap}
}

func newPcap(out *source.Sink) source.Reader {
	return &pcapLog{output: wire.Output{Sink: out}, conns: map[connKey]*conn{}, servers: map[netip.AddrPort]wire.Protocol{}, links: map[layers.LinkType]*packetParser{}}
}

// isPcap knows pcap files by their magic number, in either byte order, with microseconds or nanoseconds, and pcapng by its first block.
func isPcap(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	switch binary.BigEndian.Uint32(head) {
	case 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1, 0x0a0d0d0a:
		return true
	}
	return false
}

// packetReader is what pcapgo's readers of both formats are.
type packetReader interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// maxPacket is larger than any packet; a length beyond it is a sign of damage.
const maxPacket = 1 << 20

// Read reads the next file.
func (l *pcapLog) Read(in *source.Input) error {
	r, limit, err := openPackets(in)
	if err != nil {
		return err
	}
	for {
		limit.left = maxBetween
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return nil
		}
		in.N++
		if err != nil {
			// A damaged or cut-off file: packets have no marks by which one could go on behind the damage.
			l.output.Sink.Unknown(in.N, "the packet capture is damaged or cut off here: "+err.Error(), nil)
			return nil
		}
		link := r.LinkType()
		if len(info.AncillaryData) > 0 { // pcapng: each interface has its own
			if of, ok := info.AncillaryData[0].(layers.LinkType); ok {
				link = of
			}
		}
		p, known := l.links[link]
		if !known {
			p = newPacketParser(link)
			l.links[link] = p
		}
		if p == nil {
			l.output.Sink.Other(fmt.Sprintf("packets of link type %s, which is not supported", link))
			continue
		}
		if err := l.packet(in, p, data, info); err != nil {
			return err
		}
	}
}

// limited bounds what is read at a time, as the lengths in a damaged packet capture may be anything.
type limited struct {
	in   io.Reader
	left int
}

// maxBetween is how much of a packet capture is read for one packet, with what comes in front of it.
const maxBetween = 256 << 20

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("no packet ends within %d bytes", maxBetween)
	}
	n, err := l.in.Read(p)
	l.left -= n
	return n, err
}

func openPackets(in *source.Input) (packetReader, *limited, error) {
	limit := &limited{in: in.R, left: maxBetween}
	head, err := in.R.Peek(4)
	if err != nil {
		return nil, nil, fmt.Errorf("the packet capture is cut off in its header: %w", err)
	}
	if bytes.Equal(head, []byte{0x0a, 0x0d, 0x0d, 0x0a}) {
		o := pcapgo.DefaultNgReaderOptions
		o.WantMixedLinkType = true
		r, err := pcapgo.NewNgReader(limit, o)
		if err != nil {
			return nil, nil, fmt.Errorf("the packet capture's header (pcapng) is damaged or cut off: %w", err)
		}
		return r, limit, nil
	}
	r, err := pcapgo.NewReader(limit)
	if err != nil {
		return nil, nil, fmt.Errorf("the packet capture's header is damaged, cut off, or none of pcap's: %w", err)
	}
	if newPacketParser(r.LinkType()) == nil {
		return nil, nil, fmt.Errorf("packets of link type %s are not supported: capture on an Ethernet interface or on \"any\"", r.LinkType())
	}
	if r.Snaplen() == 0 || r.Snaplen() > maxPacket {
		r.SetSnaplen(maxPacket)
	}
	return r, limit, nil
}

// packetParser decodes the layers of packets of one link type.
type packetParser struct {
	eth     layers.Ethernet
	vlan    layers.Dot1Q
	sll     layers.LinuxSLL
	sll2    layers.LinuxSLL2
	loop    layers.Loopback
	ip4     layers.IPv4
	ip6     layers.IPv6
	tcp     layers.TCP
	parser  *gopacket.DecodingLayerParser
	six     *gopacket.DecodingLayerParser // for packets of IPv6 on links without a header of their own
	decoded []gopacket.LayerType
}

func newPacketParser(link layers.LinkType) *packetParser {
	p := &packetParser{}
	var first gopacket.LayerType
	switch link {
	case layers.LinkTypeEthernet:
		first = layers.LayerTypeEthernet
	case layers.LinkTypeLinuxSLL:
		first = layers.LayerTypeLinuxSLL
	case layers.LinkTypeLinuxSLL2:
		first = layers.LayerTypeLinuxSLL2
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		first = layers.LayerTypeLoopback
	case layers.LinkTypeRaw, layers.LinkTypeIPv4, 12, 14: // 12 and 14: DLT_RAW of some systems
		first = layers.LayerTypeIPv4
	case layers.LinkTypeIPv6:
		first = layers.LayerTypeIPv6
	default:
		return nil
	}
	p.parser = gopacket.NewDecodingLayerParser(first, &p.eth, &p.vlan, &p.sll, &p.sll2, &p.loop, &p.ip4, &p.ip6, &p.tcp)
	p.parser.IgnoreUnsupported = true
	if first == layers.LayerTypeIPv4 {
		p.six = gopacket.NewDecodingLayerParser(layers.LayerTypeIPv6, &p.ip6, &p.tcp)
		p.six.IgnoreUnsupported = true
	}
	return p
}

// segment is a TCP segment.
type segment struct {
	at       int64
	from, to netip.AddrPort
	seq      uint32
	acked    uint32 // up to where the sender has got the other side's
	syn, ack bool
	end      bool // FIN or RST
	reset    bool
	data     []byte
	missing  int // bytes of it that were not captured
}

// parse gives the TCP segment of a packet.
func (p *packetParser) parse(data []byte) (s segment, tcp bool) {
	parser := p.parser
	if p.six != nil && len(data) > 0 && data[0]>>4 == 6 {
		parser = p.six
	}
	if err := parser.DecodeLayers(data, &p.decoded); err != nil {
		// Usually a packet that was cut (snaplen); what was decoded holds.
		if len(p.decoded) == 0 {
			return s, false
		}
	}
	var src, dst netip.Addr
	length := -1
	for _, t := range p.decoded {
		switch t {
		case layers.LayerTypeIPv4:
			src, dst = address(p.ip4.SrcIP), address(p.ip4.DstIP)
			length = int(p.ip4.Length) - 4*int(p.ip4.IHL)
		case layers.LayerTypeIPv6:
			src, dst = address(p.ip6.SrcIP), address(p.ip6.DstIP)
			length = int(p.ip6.Length)
		case layers.LayerTypeTCP:
			tcp = true
		}
	}
	if !tcp || !src.IsValid() || !dst.IsValid() {
		return s, false
	}
	s = segment{
		from: netip.AddrPortFrom(src, uint16(p.tcp.SrcPort)), to: netip.AddrPortFrom(dst, uint16(p.tcp.DstPort)), seq: p.tcp.Seq, acked: p.tcp.Ack,
		syn: p.tcp.SYN, ack: p.tcp.ACK, end: p.tcp.FIN || p.tcp.RST, reset: p.tcp.RST, data: p.tcp.Payload,
	}
	if whole := length - 4*int(p.tcp.DataOffset); length > 0 && whole >= 0 && whole < len(s.data) {
		s.data = s.data[:whole] // padding of short frames
	} else if length > 0 && whole > len(s.data) {
		s.missing = whole - len(s.data)
	}
	return s, true
}

func address(ip []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

func (l *pcapLog) packet(in *source.Input, p *packetParser, data []byte, info gopacket.CaptureInfo) error {
	s, ok := p.parse(data)
	if !ok {
		l.output.Sink.Other("packets that are not TCP")
		return nil
	}
	s.at = info.Timestamp.UnixNano()
	l.output.Sink.Seen(in.N, s.at)
	key := connKey{s.from, s.to}
	if s.to.Compare(s.from) < 0 {
		key = connKey{s.to, s.from}
	}
	c := l.conns[key]
	if s.syn && !s.ack && c != nil && !c.repeated(&s) { // the ports are used again
		if err := l.close(c, s.at, trace.EndLost); err != nil {
			return err
		}
		c = nil
	}
	if c == nil {
		if len(s.data) == 0 && !s.syn {
			return nil
		}
		var err error
		if c, err = l.newConn(key, &s); err != nil {
			return err
		}
	}
	if s.missing > 0 {
		l.partial = true
	}
	return c.segment(&s)
}

func (l *pcapLog) newConn(key connKey, s *segment) (*conn, error) {
	for len(l.conns) >= maxConns {
		old := l.order[0]
		l.order = l.order[1:]
		if l.conns[old.key] == old {
			if err := l.close(old, old.seen, "not seen to its end"); err != nil {
				return nil, err
			}
		}
	}
	if len(l.order) > 2*maxConns {
		l.order = slices.DeleteFunc(l.order, func(c *conn) bool { return l.conns[c.key] != c })
	}
	c := &conn{log: l, key: key}
	if s.syn {
		c.client = s.from
		if s.ack {
			c.client = s.to
		}
		c.whole = true
	}
	l.conns[key] = c
	l.order = append(l.order, c)
	return c, nil
}

// close ends a connection.
func (l *pcapLog) close(c *conn, at int64, reason string) error {
	delete(l.conns, c.key)
	if err := c.drain(); err != nil {
		return err
	}
	if c.decoder == nil {
		l.unrecognised(c)
		return nil
	}
	return c.decoder.Close(at, reason)
}

// unrecognised counts a connection whose protocol is not known.
func (l *pcapLog) unrecognised(c *conn) {
	switch {
	case !c.spoke:
	case slices.ContainsFunc([]netip.AddrPort{c.key.a, c.key.b}, func(a netip.AddrPort) bool {
		return l.usual(a) != wire.Unknown || slices.Contains(l.output.Sink.Options.Ports, int(a.Port()))
	}):
		l.opaque++
	default:
		l.output.Sink.Other("connections of other protocols")
	}
}

// usual tells which protocol the server at an address has by its port, or by what the user named.
func (l *pcapLog) usual(a netip.AddrPort) wire.Protocol {
	switch {
	case l.servers[a] != wire.Unknown:
		return l.servers[a]
	case a.Port() == 5432:
		return wire.Postgres
	case a.Port() == 3306 || a.Port() == 4000:
		return wire.MySQL
	}
	return wire.Unknown
}

// Finish ends the connections, and reports what the packets do not show.
func (l *pcapLog) Finish() error {
	for _, c := range l.order {
		if l.conns[c.key] != c {
			continue
		}
		if err := c.drain(); err != nil {
			return err
		}
		if c.decoder == nil {
			l.unrecognised(c)
			continue
		}
		if err := c.decoder.Flush(); err != nil {
			return err
		}
	}
	r := l.output.Sink.Report
	if l.output.Encrypted > 0 {
		r.Lacks(fmt.Sprintf("what was sent over %s with TLS or other encryption", prose.Count(l.output.Encrypted, "connection")),
			"sslmode=disable gssencmode=disable (PostgreSQL), --ssl-mode=DISABLED, --skip-ssl (MySQL, MariaDB) at the clients for as long as it is captured")
	}
	if l.output.Compressed > 0 {
		r.Lacks(fmt.Sprintf("what was sent over %s with compression", prose.Count(l.output.Compressed, "connection")), "clients without --compress, protocol_compression_algorithms = uncompressed at the server")
	}
	if l.opaque > 0 {
		r.Lacks(fmt.Sprintf("what was sent over %s to servers' usual ports, which began before the packet capture and make no sense", prose.Count(l.opaque, "connection")),
			"capture them from their beginning, without TLS and compression")
	}
	if l.gaps > 0 {
		r.Note("%d times packets are missing from connections; the statements around them may be incomplete", l.gaps)
	}
	if l.partial {
		r.Note("packets were captured in part only: tcpdump -s 0")
	}
	if l.output.Copies > 0 {
		r.Lacks(fmt.Sprintf("the data of %d COPY and LOAD DATA LOCAL statements (not kept)", l.output.Copies), "")
	}
	if r.Sessions == 0 {
		r.Note("no connection of PostgreSQL or the MySQL family was recognised; --port names the ports of servers")
	}
	r.Lacks("isolation levels that sessions did not ask for by name", "")
	return nil
}
