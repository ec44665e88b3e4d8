package source_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
	"wirecheck/trace/recorder"
	"wirecheck/trace/source"
)

// tap forwards connections to a server and keeps what passes, as a packet capture would.
type tap struct {
	t        testing.TB
	listener net.Listener
	wait     sync.WaitGroup

	mu     sync.Mutex
	pieces []piece
	conns  int
}

// piece is what passed at once; data of nil is the beginning or the end of a connection.
type piece struct {
	at     time.Time
	conn   int
	server bool // the server said it
	data   []byte
	open   bool
}

func newTap(t testing.TB, server string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{t: t, listener: l}
	p.wait.Add(1)
	go func() {
		defer p.wait.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			n := p.note(piece{open: true, conn: -1})
			p.wait.Add(2)
			var once sync.Once
			end := func() { once.Do(func() { c.Close(); s.Close(); p.note(piece{conn: n}) }) }
			go p.pass(n, false, c, s, end)
			go p.pass(n, true, s, c, end)
		}
	}()
	return p
}

func (p *tap) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *tap) note(x piece) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.at = time.Now()
	if x.conn < 0 {
		x.conn = p.conns
		p.conns++
	}
	p.pieces = append(p.pieces, x)
	return x.conn
}

func (p *tap) pass(conn int, server bool, from io.Reader, to io.Writer, end func()) {
	defer p.wait.Done()
	defer end()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.note(piece{conn: conn, server: server, data: bytes.Clone(buf[:n])})
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// close waits until all connections have ended, and gives what passed.
func (p *tap) close() []piece {
	p.listener.Close()
	p.wait.Wait()
	return p.pieces
}

// packet is a packet of a capture.
type packet struct {
	at     time.Time
	conn   int
	server bool
	data   []byte
}

// packets makes packets of what passed; conn i has the client port 40000+i.
func packetsOf(t testing.TB, pieces []piece, serverPort int) []packet {
	t.Helper()
	type ends struct{ client, server uint32 }
	seqs := map[int]*ends{}
	var out []packet
	for _, p := range pieces {
		s := seqs[p.conn]
		if s == nil {
			s = &ends{client: 4294967200, server: 7} // the client's numbers run over
			seqs[p.conn] = s
		}
		send := func(server bool, tcp layers.TCP, data []byte) {
			ip := layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
			tcp.SrcPort, tcp.DstPort, tcp.Seq, tcp.Ack = layers.TCPPort(40000+p.conn), layers.TCPPort(serverPort), s.client, s.server
			if server {
				ip.SrcIP, ip.DstIP = ip.DstIP, ip.SrcIP
				tcp.SrcPort, tcp.DstPort, tcp.Seq, tcp.Ack = tcp.DstPort, tcp.SrcPort, s.server, s.client
			}
			n := uint32(len(data))
			if tcp.SYN || tcp.FIN {
				n++
			}
			if server {
				s.server += n
			} else {
				s.client += n
			}
			eth := layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6), EthernetType: layers.EthernetTypeIPv4}
			if err := tcp.SetNetworkLayerForChecksum(&ip); err != nil {
				t.Fatal(err)
			}
			b := gopacket.NewSerializeBuffer()
			if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, &eth, &ip, &tcp, gopacket.Payload(data)); err != nil {
				t.Fatal(err)
			}
			out = append(out, packet{p.at, p.conn, server, bytes.Clone(b.Bytes())})
		}
		switch {
		case p.open:
			send(false, layers.TCP{SYN: true}, nil)
			send(true, layers.TCP{SYN: true, ACK: true}, nil)
		case p.data == nil:
			send(false, layers.TCP{FIN: true, ACK: true}, nil)
			send(true, layers.TCP{FIN: true, ACK: true}, nil)
		default:
			for data := p.data; len(data) > 0; {
				n := min(len(data), 700)
				send(p.server, layers.TCP{ACK: true, PSH: true}, data[:n])
				data = data[n:]
			}
		}
	}
	return out
}

// pcapFile writes a capture, or with ng a pcapng.
func pcapFile(t testing.TB, packets []packet, ng bool) []byte {
	t.Helper()
	var b bytes.Buffer
	info := func(p packet) gopacket.CaptureInfo {
		return gopacket.CaptureInfo{Timestamp: p.at, CaptureLength: len(p.data), Length: len(p.data)}
	}
	if ng {
		w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			if err := w.WritePacket(info(p), p.data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	w := pcapgo.NewWriterNanos(&b)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, p := range packets {
		if err := w.WritePacket(info(p), p.data); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// recordPieces gives what passed to a recorder as a proxy would, and reads the trace.
func recordPieces(t testing.TB, pieces []piece, p wire.Protocol) []*trace.Record {
	t.Helper()
	path := filepath.Join(t.TempDir(), "live.wct")
	r, err := recorder.New(recorder.Options{Path: path, Rows: source.DefaultRows, Started: time.Unix(1_700_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	live := map[int]*recorder.Session{}
	for _, x := range pieces {
		c := live[x.conn]
		switch {
		case x.open:
			live[x.conn] = r.Begin(uint64(x.conn)+1, p, fmt.Sprintf("10.0.0.1:%d", 40000+x.conn), x.at)
		case x.data == nil:
			c.Closed(x.at)
		case x.server:
			c.FromServer(x.at)
			c.ToClient(x.data, x.at)
		default:
			c.FromClient(x.data, x.at)
		}
	}
	if err := r.Close(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return readTrace(t, path)
}

// readTrace reads a file that must be whole.
func readTrace(t testing.TB, path string) (records []*trace.Record) {
	t.Helper()
	r, err := trace.Open(path, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var rec trace.Record
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		records = append(records, &rec)
	}
	if r.Warning() != "" {
		t.Errorf("%s: %s", path, r.Warning())
	}
	return records
}
