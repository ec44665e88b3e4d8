package report

import "wirecheck/oracle"

// Words are what a report says of a finding, for forms that other packages give it. The finding must be Printable.
type Words struct {
	Sentence string   // who did what to whom
	Acts     []Act    // what happened, in order
	Effect   string   // what follows from it
	Level    string   // what the isolation level has to do with it
	Shape    string   // the formal name, with the kinds of edges
	Rows     []string // of each edge: its row as people name it
	Who      []string // of each transaction: its session and client
	Argument []string // the proof: a sentence for each edge
}

// Act is one thing that happened.
type Act struct {
	Text string
	SQL  string // its statement on one line; empty: it was not captured
}

// Tell says a finding in words.
func Tell(f *oracle.Finding) Words {
	t := teller{f: f}
	w := Words{Sentence: capital(t.sentence()) + ".", Effect: t.effect(), Level: t.level(), Shape: shape(f), Argument: Argument(f)}
	for _, a := range t.acts() {
		w.Acts = append(w.Acts, Act{a.text, a.sql})
	}
	for i := range f.Edges {
		w.Rows = append(w.Rows, t.row(&f.Edges[i]))
	}
	for i := range f.Transactions {
		w.Who = append(w.Who, transaction(&f.Transactions[i], f.Level == "mixed"))
	}
	return w
}
