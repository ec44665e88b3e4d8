package mysqlwire

import (
	"bytes"
	"fmt"

	dialect "wirecheck/rewrite/mysql"
)

// Column definitions of an answer. Where the plan says how many columns are ours, they pass one by one; where only their
// names tell, they are held until all are there.

// typeOf is the type in a column definition: its tail has a fixed length (MySQL manual, "Column Definition": charset,
// length, type, flags, decimals, two bytes of filler).
func typeOf(def []byte) (byte, error) {
	if len(def) < 13 {
		return 0, errMalformed
	}
	return def[len(def)-6], nil
}

// columnNames are the names in a column definition: the schema, the table as the statement calls it and as the server does, the
// column as the statement calls it and as the server does.
func columnNames(def []byte) (names [5]string) {
	_, rest, err := lenencString(def)
	for i := range names {
		var text []byte
		if err == nil {
			text, rest, err = lenencString(rest)
		}
		names[i] = string(text)
	}
	return names
}

// isOurs reports whether a column definition is that of a hidden column.
func isOurs(def []byte) bool { return dialect.HiddenColumn(columnNames(def)[3]) }

// takeDefinition takes the definition of a column, with its type.
func (l *link) takeDefinition() (def []byte, typ byte, err error) {
	if def, err = l.takeNext(); err != nil {
		return nil, 0, err
	}
	if typ, err = typeOf(def); err != nil {
		return nil, 0, fmt.Errorf("read a column definition: %w", err)
	}
	return def, typ, nil
}

// relayDefinitions relays n column definitions except the last hidden ones, and returns the types of all of them. If names is
// not nil, it gets their names.
func (l *link) relayDefinitions(n, hidden int, names *[][5]string) ([]byte, error) {
	types := make([]byte, 0, n)
	l.sources = nil
	for i := range n {
		def, typ, err := l.takeDefinition()
		if err != nil {
			return nil, err
		}
		types = append(types, typ)
		if names != nil {
			*names = append(*names, columnNames(def))
		}
		if err := l.relayDefinition(def, i >= n-hidden); err != nil {
			return nil, err
		}
	}
	return types, nil
}

// relayDefinition relays a column definition that is not hidden.
func (l *link) relayDefinition(def []byte, hidden bool) error {
	if hidden {
		return nil
	}
	if l.wantSources {
		l.sources = append(l.sources, sourceOf(def))
	}
	return l.toClient(def)
}

// relayDefinitionList relays a list of definitions with its EOF. A list that is empty, or of which nothing is left, has
// no EOF.
func (l *link) relayDefinitionList(n, hidden int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	types, err := l.relayDefinitions(n, hidden, nil)
	if err != nil || l.has(deprecateEOF) {
		return types, err
	}
	if n == hidden {
		_, err = l.takeNext()
		return types, err
	}
	return types, l.passNext()
}

// holdDefinitions reads n column definitions and counts how many of the last ones are ours.
func (l *link) holdDefinitions(n int) (held [][]byte, ours int, err error) {
	for range n {
		def, err := l.takeNext()
		if err != nil {
			return nil, 0, err
		}
		held = append(held, bytes.Clone(def))
		if isOurs(def) {
			ours++
		} else {
			ours = 0
		}
	}
	return held, ours, nil
}

// releaseDefinitions relays held definitions except the last hidden ones, and returns the types of all of them.
func (l *link) releaseDefinitions(held [][]byte, hidden int) ([]byte, error) {
	types := make([]byte, 0, len(held))
	l.sources = nil
	for i, def := range held {
		typ, err := typeOf(def)
		if err != nil {
			return nil, fmt.Errorf("read a column definition: %w", err)
		}
		types = append(types, typ)
		if err := l.relayDefinition(def, i >= len(held)-hidden); err != nil {
			return nil, err
		}
	}
	return types, nil
}
