package source_test

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"wirecheck/trace/source"
)

// framed is an IPv4 packet of TCP within the frame of a link.
func framed(t testing.TB, link layers.LinkType, port layers.TCPPort, client bool, seq uint32, data string) []byte {
	t.Helper()
	src, dst := net.IP{10, 0, 0, 1}, net.IP{10, 0, 0, 2}
	tcp := &layers.TCP{SrcPort: 50000, DstPort: port, ACK: true, Window: 1000, Seq: seq}
	if !client {
		src, dst, tcp.SrcPort, tcp.DstPort = dst, src, port, 50000
	}
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 9, Protocol: layers.IPProtocolTCP, SrcIP: src, DstIP: dst}
	if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, tcp, gopacket.Payload(data)); err != nil {
		t.Fatal(err)
	}
	head := map[layers.LinkType]string{
		layers.LinkTypeEthernet:  strings.Repeat("\x00", 12) + "\x08\x00",
		layers.LinkTypeLinuxSLL:  "\x00\x00\x00\x01\x00\x06" + strings.Repeat("\x00", 8) + "\x08\x00",
		layers.LinkTypeLinuxSLL2: "\x08\x00\x00\x00\x00\x00\x00\x02\x00\x01\x00\x06" + strings.Repeat("\x00", 8),
		layers.LinkTypeNull:      "\x02\x00\x00\x00",
		layers.LinkTypeLoop:      "\x00\x00\x00\x02",
		layers.LinkTypeRaw:       "",
	}
	double := strings.Repeat("\x00", 12) + "\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00" // a tag within a tag
	if link == linkDouble {
		return append([]byte(double), b.Bytes()...)
	}
	return append([]byte(head[link]), b.Bytes()...)
}

// linkDouble stands for Ethernet with two VLAN tags.
const linkDouble = layers.LinkType(255)

// aTalk is a conversation of two queries.
var aTalk = []string{">" + pgMsg('Q', "SELECT 1\x00"), "<" + pgMsg('C', "SELECT 1\x00") + pgMsg('Z', "I"), ">" + pgMsg('Q', "SELECT 2\x00"), "<" + pgMsg('C', "SELECT 2\x00") + pgMsg('Z', "I")}

type capture struct {
	data  []byte
	iface int
}

func talkOn(t testing.TB, link layers.LinkType, port layers.TCPPort, said ...string) []capture {
	t.Helper()
	var out []capture
	seq := [2]uint32{100, 200}
	for _, s := range said {
		who := 0
		if s[0] == '<' {
			who = 1
		}
		out = append(out, capture{data: framed(t, link, port, who == 0, seq[who], s[1:])})
		seq[who] += uint32(len(s) - 1)
	}
	return out
}

// TestLinks reads captures of every kind of link, in pcap with microseconds and nanoseconds and in pcapng.
func TestLinks(t *testing.T) {
	for _, link := range []layers.LinkType{layers.LinkTypeEthernet, linkDouble, layers.LinkTypeLinuxSLL, layers.LinkTypeLinuxSLL2, layers.LinkTypeNull, layers.LinkTypeLoop, layers.LinkTypeRaw} {
		said := link
		if link == linkDouble {
			said = layers.LinkTypeEthernet
		}
		for _, kind := range []string{"pcap", "nanoseconds", "pcapng"} {
			var out bytes.Buffer
			write := func(gopacket.CaptureInfo, []byte) error { return nil }
			flush := func() error { return nil }
			var err error
			switch kind {
			case "pcapng":
				var w *pcapgo.NgWriter
				if w, err = pcapgo.NewNgWriter(&out, said); err == nil {
					write, flush = w.WritePacket, w.Flush
				}
			default:
				w := pcapgo.NewWriter(&out)
				if kind == "nanoseconds" {
					w = pcapgo.NewWriterNanos(&out)
				}
				err, write = w.WriteFileHeader(65536, said), w.WritePacket
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range talkOn(t, link, 7777, aTalk...) {
				info := gopacket.CaptureInfo{Timestamp: time.Unix(1, int64(i)*1001), CaptureLength: len(p.data), Length: len(p.data)}
				if err := write(info, p.data); err != nil {
					t.Fatal(err)
				}
			}
			if err := flush(); err != nil {
				t.Fatal(err)
			}
			sts, report := imported(t, out.Bytes(), "pcap", source.Options{})
			if !cmp.Equal(texts(sts), []string{"SELECT 1", "SELECT 2"}) || report.Unknown != 0 {
				t.Errorf("%s in %s: %v\n%s", link, kind, texts(sts), reportText(t, report))
			}
			if want := int64(1_000_002_002); kind != "pcap" && sts != nil && sts[1].Start != want && sts[1].Start != want/1000*1000 {
				t.Errorf("%s in %s: the second statement began at %d, want %d", link, kind, sts[1].Start, want)
			}
		}
	}
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(65536, layers.LinkTypeIEEE802_11); err != nil {
		t.Fatal(err)
	}
	if _, err := streamBytes(t, out.Bytes(), "pcap", source.Options{}); err == nil || !strings.Contains(err.Error(), "are not supported: capture on an Ethernet interface") {
		t.Errorf("wireless frames: %v", err)
	}
}

// TestInterfaces reads a pcapng of several interfaces of different links, of which one is not supported: its packets are counted.
func TestInterfaces(t *testing.T) {
	var out bytes.Buffer
	w, err := pcapgo.NewNgWriter(&out, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []layers.LinkType{layers.LinkTypeLinuxSLL2, layers.LinkTypeIEEE802_11} {
		if _, err := w.AddInterface(pcapgo.NgInterface{LinkType: link, SnapLength: 0, TimestampResolution: 9}); err != nil {
			t.Fatal(err)
		}
	}
	all := talkOn(t, layers.LinkTypeEthernet, 7777, aTalk...)
	for _, p := range talkOn(t, layers.LinkTypeLinuxSLL2, 8888, aTalk...) {
		all = append(all, capture{p.data, 1})
	}
	all = append(all, capture{[]byte("a wireless frame"), 2})
	for i, p := range all {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, int64(i)*1000), CaptureLength: len(p.data), Length: len(p.data), InterfaceIndex: p.iface}
		if err := w.WritePacket(info, p.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	sts, report := imported(t, out.Bytes(), "pcap", source.Options{})
	if len(sts) != 4 || report.Sessions != 2 || !strings.Contains(reportText(t, report), "which is not supported: 1") {
		t.Errorf("%v\n%s", texts(sts), reportText(t, report))
	}
}

// TestUnreadable has connections that cannot be understood: what kind they are is told where it shows, and other protocols are only counted.
func TestUnreadable(t *testing.T) {
	greeting := "\x0a8.4.3\x00\x09\x00\x00\x0012345678\x00\xff\xff\x2d\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00123456789012\x00caching_sha2_password\x00"
	login := func(caps string) string {
		return caps + "\x00\x00\x00\x01\x2d" + strings.Repeat("\x00", 23) + "app\x00\x00"
	}
	tls := []string{">\x17\x03\x03\x00\x05hello", "<\x17\x03\x03\x00\x02hi", ">\x17\x03\x03\x00\x05hello"}
	open := []piece{{at: time.Unix(1, 0), open: true}}
	whole := func(said ...string) []byte {
		all := open
		for i, s := range said {
			all = append(all, piece{at: time.Unix(2, int64(i)), server: s[0] == '<', data: []byte(s[1:])})
		}
		return pcapFile(t, packetsOf(t, append(all, piece{at: time.Unix(3, 0)}), 9999), false)
	}
	joined := func(port layers.TCPPort, said []string) []byte {
		var out bytes.Buffer
		w := pcapgo.NewWriter(&out)
		if err := w.WriteFileHeader(65536, layers.LinkTypeRaw); err != nil {
			t.Fatal(err)
		}
		for i, p := range talkOn(t, layers.LinkTypeRaw, port, said...) {
			if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, int64(i)), CaptureLength: len(p.data), Length: len(p.data)}, p.data); err != nil {
				t.Fatal(err)
			}
		}
		return out.Bytes()
	}
	const compressed, encrypted, opaque, other = "1 connection with compression", "1 connection with TLS", "1 connection to servers' usual ports", "connections of other protocols: 1"
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"MySQL with compression", whole("<"+myMsg(0, greeting), ">"+myMsg(1, login("\x25\xa2\x00\x00")), "<"+myMsg(2, "\x00\x00\x00\x02\x00\x00\x00"), ">\x0d\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x03SELECT 1"), compressed},
		{"MySQL with zstd", whole("<"+myMsg(0, greeting), ">"+myMsg(1, login("\x05\xa2\x00\x04")), "<"+myMsg(2, "\x00\x00\x00\x02\x00\x00\x00")), compressed},
		{"MySQL without", whole("<"+myMsg(0, greeting), ">"+myMsg(1, login("\x05\xa2\x00\x00")), "<"+myMsg(2, "\x00\x00\x00\x02\x00\x00\x00")), ""},
		{"PostgreSQL with TLS", whole(append([]string{">\x00\x00\x00\x08\x04\xd2\x16\x2f", "<S"}, tls...)...), encrypted},
		{"PostgreSQL with GSS encryption", whole(">\x00\x00\x00\x08\x04\xd2\x16\x30", "<G", ">xxxx"), encrypted},
		{"TLS, joined, port 5432", joined(5432, tls), opaque},
		{"TLS, joined, port 443", joined(443, tls), other},
		{"HTTP", joined(80, []string{">GET / HTTP/1.1\r\n\r\n", "<HTTP/1.1 200 OK\r\n\r\n"}), other},
	} {
		sts, report := imported(t, tt.file, "pcap", source.Options{})
		text := reportText(t, report)
		for _, note := range []string{compressed, encrypted, opaque, other} {
			if (note == tt.want) != strings.Contains(text, note) {
				t.Errorf("%s: about %q:\n%s", tt.name, note, text)
			}
		}
		if len(sts) != 0 {
			t.Errorf("%s: %v", tt.name, texts(sts))
		}
	}
}

// TestSegments has segments out of order, twice, and overlapping; and two servers at different ports in one capture.
func TestSegments(t *testing.T) {
	query := func(n byte) string { return pgMsg('Q', "SELECT "+string(n)+"\x00") }
	answer := pgMsg('C', "SELECT 1\x00") + pgMsg('Z', "I")
	q, a := len(query('1')), len(answer)
	for name, segments := range map[string][]seg{
		"in order":     {{true, 0, query('1')}, {false, 0, answer}, {true, q, query('2')}, {false, a, answer}},
		"sent again":   {{true, 0, query('1')}, {true, 0, query('1')}, {false, 0, answer}, {false, 0, answer}, {true, q, query('2')}, {true, 0, query('1')}, {false, a, answer}},
		"overlapping":  {{true, 0, query('1')}, {false, 0, answer}, {true, q - 5, query('1')[q-5:] + query('2')}, {false, a - 3, answer[a-3:] + answer}},
		"swapped":      {{true, 0, query('1')}, {false, 0, answer}, {true, q + 6, query('2')[6:]}, {true, q, query('2')[:6]}, {false, a + 4, answer[4:]}, {false, a, answer[:4]}},
		"byte by byte": append([]seg{{true, 0, query('1')}, {false, 0, answer}}, append(bytewise(q, query('2')), seg{false, a, answer})...),
	} {
		var out bytes.Buffer
		w := pcapgo.NewWriter(&out)
		if err := w.WriteFileHeader(65536, layers.LinkTypeRaw); err != nil {
			t.Fatal(err)
		}
		for i, s := range segments {
			for _, port := range []layers.TCPPort{7777, 5433} {
				data := framed(t, layers.LinkTypeRaw, port, s.client, uint32(1000+s.seq), s.data)
				if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, int64(i)*1000), CaptureLength: len(data), Length: len(data)}, data); err != nil {
					t.Fatal(err)
				}
			}
		}
		sts, report := imported(t, out.Bytes(), "pcap", source.Options{Ports: []int{7777, 5433}})
		seen := map[string]int{}
		for _, st := range sts {
			if len(st.Results) == 1 && st.Results[0].Tag == "SELECT 1" {
				seen[st.SQL]++
			}
		}
		if d := cmp.Diff(map[string]int{"SELECT 1": 2, "SELECT 2": 2}, seen); d != "" || report.Sessions != 2 || len(sts) != 4 {
			t.Errorf("%s: %s\n%s", name, d, reportText(t, report))
		}
	}
}

// seg is a segment; seq counts from the first one of its side.
type seg struct {
	client bool
	seq    int
	data   string
}

func bytewise(at int, s string) (out []seg) {
	for i := range len(s) {
		out = append(out, seg{true, at + i, s[i : i+1]})
	}
	return out
}
