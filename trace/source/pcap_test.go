package source_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

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

// talkPackets makes the packets of a conversation of which the beginning is missing; lines begin with > (client) or <.
func talkPackets(t testing.TB, link layers.LinkType, six bool, said ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(65536, link); err != nil {
		t.Fatal(err)
	}
	seq := [2]uint32{100, 200}
	for i, s := range said {
		who := 0
		src, dst := net.IP{10, 0, 0, 1}, net.IP{10, 0, 0, 2}
		tcp := &layers.TCP{SrcPort: 50000, DstPort: 7777, ACK: true, Window: 1000}
		if s[0] == '<' {
			who, src, dst, tcp.SrcPort, tcp.DstPort = 1, dst, src, 7777, 50000
		}
		tcp.Seq = seq[who]
		seq[who] += uint32(len(s) - 1)
		var network gopacket.SerializableLayer
		kind := layers.EthernetTypeIPv4
		if six {
			kind = layers.EthernetTypeIPv6
			ip := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: layers.IPProtocolTCP, SrcIP: append(make(net.IP, 12), src...), DstIP: append(make(net.IP, 12), dst...)}
			ip.SrcIP[0], ip.DstIP[0] = 0xfd, 0xfd
			network = ip
			if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
				t.Fatal(err)
			}
		} else {
			ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 9, Protocol: layers.IPProtocolTCP, SrcIP: src, DstIP: dst}
			network = ip
			if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
				t.Fatal(err)
			}
		}
		all := []gopacket.SerializableLayer{network, tcp, gopacket.Payload(s[1:])}
		if link == layers.LinkTypeEthernet {
			eth := &layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeDot1Q}
			all = append([]gopacket.SerializableLayer{eth, &layers.Dot1Q{VLANIdentifier: 5, Type: kind}}, all...)
		}
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
			t.Fatal(err)
		}
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, int64(i)*1000), CaptureLength: len(b.Bytes()), Length: len(b.Bytes())}
		if err := w.WritePacket(info, b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestJoinedPrepared joins sessions that only execute what was prepared before, on a port that says nothing, over several kinds of links.
func TestJoinedPrepared(t *testing.T) {
	pgTalk := []string{">" + pgBindExecute, "<" + pgRowAnswer, ">" + pgMsg('Q', "COMMIT\x00"), "<" + pgMsg('C', "COMMIT\x00") + pgMsg('Z', "I")}
	myTalk := []string{">" + myMsg(0, "\x17\x09\x00\x00\x00\x00\x01\x00\x00\x00"), "<" + myMsg(1, "\x00\x01\x00\x03\x00\x00\x00"), ">" + myMsg(0, "\x03COMMIT"), "<" + myMsg(1, "\x00\x00\x00\x02\x00\x00\x00")}
	for _, tt := range []struct {
		name string
		said []string
		want string
	}{
		{"PostgreSQL", pgTalk, "? [prepared] (a statement whose text is not known)  {7}  -> SELECT 1, 1 row [5]  (0.001 ms)\nT COMMIT  -> COMMIT  (0.001 ms)\n"},
		{"PostgreSQL, from an answer on", pgTalk[1:], "T COMMIT  -> COMMIT  (0.001 ms)\n"},
		{"MySQL", myTalk, "? [prepared] (a statement whose text is not known)  -> 1 affected  (0.001 ms)\nT COMMIT  -> 0 affected  (0.001 ms)\n"},
	} {
		for link, six := range map[layers.LinkType]bool{layers.LinkTypeEthernet: false, layers.LinkTypeRaw: true, layers.LinkTypeIPv4: false} {
			records, report := importBytes(t, talkPackets(t, link, six, tt.said...), source.Options{})
			var got strings.Builder
			for _, r := range records {
				if r.Kind == trace.KindStatement {
					_, text, _ := strings.Cut(string(trace.AppendText(nil, r, trace.TextOptions{Rows: 5})), " s1   ")
					got.WriteString(text)
				}
			}
			if got.String() != tt.want || report.Unknown != 0 {
				t.Errorf("%s on %s: got\n%swant\n%s%s", tt.name, link, got.String(), tt.want, reportText(t, report))
			}
		}
	}
	_, report := importBytes(t, talkPackets(t, layers.LinkTypeEthernet, true, ">GET / HTTP/1.1\r\n\r\n", "<HTTP/1.1 200 OK\r\n\r\n"), source.Options{})
	if report.Sessions != 0 || !strings.Contains(reportText(t, report), "no connection of PostgreSQL or the MySQL family") {
		t.Error(reportText(t, report))
	}
}

// TestPacketsMissing leaves packets out: what is around the gap is not told, and what follows is.
func TestPacketsMissing(t *testing.T) {
	query := func(sql string) []string {
		return []string{">" + pgMsg('Q', sql+"\x00"), "<" + pgMsg('C', sql+"\x00") + pgMsg('Z', "I")}
	}
	var said []string
	for i := range 5 {
		said = append(said, query("SELECT "+string(rune('0'+i)))...)
	}
	whole := talkPackets(t, layers.LinkTypeRaw, false, said...)
	// Cut packet 5, the answer to SELECT 2, out of the file.
	at := 24
	for range 5 {
		at += 16 + int(binary.LittleEndian.Uint32(whole[at+8:]))
	}
	next := at + 16 + int(binary.LittleEndian.Uint32(whole[at+8:]))
	records, report := importBytes(t, append(bytes.Clone(whole[:at]), whole[next:]...), source.Options{})
	got := shown(records)
	if strings.Count(got, "->") != 2 || !strings.Contains(got, "SELECT 0  -> SELECT 0") || !strings.Contains(got, "SELECT 1  -> SELECT 1") {
		t.Errorf("got\n%s", got)
	}
	// Which of the answers behind the gap is whose nobody knows.
	if n := report.Count("statements next to missing packets, or to where a connection was joined"); n != 3 || !strings.Contains(reportText(t, report), "packets are missing") {
		t.Error(reportText(t, report))
	}
}

// TestEncrypted follows connections until they are encrypted, and says that there were such.
func TestEncrypted(t *testing.T) {
	greeting := "\x0a8.4.3\x00\x09\x00\x00\x0012345678\x00\xff\xff\x2d\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00123456789012\x00caching_sha2_password\x00"
	sslRequest := "\x05\xae\xff\x19\x00\x00\x00\x01\x2d" + strings.Repeat("\x00", 23)
	for name, said := range map[string][]string{
		"PostgreSQL": {">\x00\x00\x00\x08\x04\xd2\x16\x2f", "<S", ">\x16\x03\x01\x00\x05hello", "<\x16\x03\x03\x00\x02hi"},
		"MySQL":      {"<" + myMsg(0, greeting), ">" + myMsg(1, sslRequest), ">\x16\x03\x01\x00\x05hello", "<\x16\x03\x03\x00\x02hi"},
	} {
		pieces := []piece{{at: time.Unix(1, 0), open: true}}
		for i, s := range said {
			pieces = append(pieces, piece{at: time.Unix(2, int64(i)), server: s[0] == '<', data: []byte(s[1:])})
		}
		pieces = append(pieces, piece{at: time.Unix(3, 0)})
		records, report := importBytes(t, pcapFile(t, packetsOf(t, pieces, 9999), false), source.Options{})
		encrypted := false
		for _, r := range records {
			encrypted = encrypted || r.Kind == trace.KindSession && r.Open.Encrypted
		}
		if !encrypted || report.Statements != 0 || !strings.Contains(reportText(t, report), "what was sent over 1 connection with TLS") {
			t.Errorf("%s: %s\n%s", name, shown(records), reportText(t, report))
		}
	}
	// Refused: it goes on in the clear.
	startup := "\x00\x03\x00\x00user\x00app\x00\x00"
	pieces := []piece{{at: time.Unix(1, 0), open: true}}
	for i, s := range []string{">\x00\x00\x00\x08\x04\xd2\x16\x2f", "<N", ">" + string([]byte{0, 0, 0, byte(len(startup) + 4)}) + startup,
		"<" + pgMsg('R', "\x00\x00\x00\x00") + pgMsg('Z', "I"), ">" + pgMsg('Q', "SELECT 1\x00"), "<" + pgMsg('C', "SELECT 1\x00") + pgMsg('Z', "I")} {
		pieces = append(pieces, piece{at: time.Unix(2, int64(i)), server: s[0] == '<', data: []byte(s[1:])})
	}
	records, report := importBytes(t, pcapFile(t, packetsOf(t, pieces, 9999), false), source.Options{})
	if got := shown(records); report.Statements != 1 || !strings.Contains(got, "user app") || !strings.Contains(got, "I SELECT 1  -> SELECT 1") {
		t.Errorf("%s\n%s", got, reportText(t, report))
	}
}
