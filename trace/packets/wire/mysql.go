package wire

import (
	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// myDecoder follows a connection in the protocol of the MySQL family (MySQL source documentation, Client/Server Protocol; MariaDB Knowledge
// Base, Client/Server Protocol). How results are framed depends on capabilities that were agreed upon at login; where that was not seen,
// the packets themselves show it.
type myDecoder struct {
	session
	client   myStream
	server   myStream
	phase    myPhase
	agreed   myHandshake
	queue    []*myCommand
	texts    map[uint32]*myPrepared
	prepared uint32   // id of the statement that was prepared last
	cells    [][]byte // of the row that is read
	upload   bool     // the client sends a file
}

type myPhase uint8

const (
	phaseGreeting myPhase = iota // the server's first packet
	phaseLogin                   // the client's answer
	phaseAuth                    // until OK or ERR
	phaseCommand
)

func newMyDecoder(o *Output, c Connection) *myDecoder {
	d := &myDecoder{session: session{out: o}, phase: phaseCommand, texts: map[uint32]*myPrepared{}}
	d.Number, d.Info = c.Session, trace.Session{At: c.At, Product: o.Sink.Options.Product, Client: c.Client, Joined: !c.Whole}
	if d.Info.Product == "" && !c.Whole { // else the server's greeting shows it
		d.Info.Product = "mysql"
	}
	d.Transaction.Dialect = lex.MySQL
	if c.Whole {
		d.phase = phaseGreeting
	}
	return d
}

// Encrypted says that what follows is what TLS has hidden: it begins with the client's login.
func (d *myDecoder) Encrypted() {
	d.sight = plain
	d.client, d.server = myStream{}, myStream{}
}

// Resume follows again after a gap.
func (d *myDecoder) Resume() { d.phase, d.sight = phaseCommand, plain }

// FromClient takes the next bytes of the client.
func (d *myDecoder) FromClient(b []byte, at int64) error {
	return d.messages(&d.client, b, at, d.request)
}

// FromServer takes the next bytes of the server.
func (d *myDecoder) FromServer(b []byte, at int64) error {
	return d.messages(&d.server, b, at, d.answer)
}

// messages hands on the messages of one side that the next bytes complete.
func (d *myDecoder) messages(s *myStream, b []byte, at int64, take func(seq byte, body []byte, at int64) error) error {
	d.Seen = at
	if d.sight != plain {
		return d.hidden()
	}
	for d.sight == plain && (len(b) > 0 || len(s.buf) > 0) {
		seq, body, rest, ok := s.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := take(seq, body, at); err != nil {
			return err
		}
	}
	return nil
}

// login takes the client's answer to the greeting.
func (d *myDecoder) login(body []byte) error {
	if d.agreed.login(body, &d.Info) {
		d.sight = encrypted
		return nil
	}
	d.phase = phaseAuth
	if d.agreed.both(capCompress | capZstd) {
		d.sight = ignored
		d.out.Compressed++
	}
	return d.announce()
}

func (d *myDecoder) greeting(body []byte) {
	d.phase = phaseAuth
	if d.agreed.greeting(body, &d.Info) {
		d.phase = phaseLogin
	}
}

// Gap gives up what is under way.
func (d *myDecoder) Gap() error {
	d.client, d.server = myStream{}, myStream{}
	for _, c := range d.queue {
		if c.st != nil {
			d.lost()
		}
	}
	d.queue = nil
	d.upload = false
	d.Transaction.Status = answer.Unknown
	return nil
}

// Flush hands on what the end of the trace left open.
func (d *myDecoder) Flush() error {
	if err := d.hidden(); err != nil {
		return err
	}
	if err := d.announce(); err != nil {
		return err
	}
	for _, c := range d.queue {
		if c.st == nil || c.code == comPrepare {
			continue
		}
		if err := d.hand(c.st); err != nil {
			return err
		}
	}
	d.queue = nil
	return nil
}

// Close ends the session.
func (d *myDecoder) Close(at int64, reason string) error {
	if err := d.Flush(); err != nil {
		return err
	}
	return d.end(at, reason)
}
