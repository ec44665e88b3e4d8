package history

import (
	"strconv"
	"strings"
)

// Role is what a statement does with a column.
type Role string

// The roles.
const (
	RoleSet      Role = "set"      // assigned a value that the application sent
	RoleComputed Role = "computed" // assigned what the server computes, from the current row or without values of the application
	RoleUnknown  Role = "unknown"  // assigned something else
	RoleTime     Role = "time"     // assigned the time of the statement itself, beside other columns
	RoleNull     Role = "null"     // assigned NULL
	RoleEqual    Role = "equal"    // compared with a value for equality, which must hold
	RoleIsNull   Role = "isnull"   // compared with NULL: it must be NULL
	RoleRange    Role = "range"    // compared with <, > and the like
	RoleChecked  Role = "checked"  // used in another way in the condition
)

// Assigns reports whether the column gets a value.
func (r Role) Assigns() bool {
	return r == RoleSet || r == RoleComputed || r == RoleUnknown || r == RoleTime || r == RoleNull
}

// Operand is a column that an UPDATE assigns or compares.
type Operand struct {
	Column string `json:"column"` // in lower case
	Role   Role   `json:"role"`
	Value  string `json:"value,omitempty"` // RoleSet, RoleEqual
}

// FollowedValues is how many values of one answer a recorder follows at most: what an application computes with is not a long list.
const FollowedValues = 400

// Derived says that a value which a statement assigned comes from one that the same request had read.
type Derived struct {
	Column string `json:"column"`
	Row    Row    `json:"row"` // the row that was read
	// Txn and N are the statement that read it last, and Version what it read.
	Txn     uint64 `json:"t"`
	N       int    `json:"n"`
	Version string `json:"version"`
	Read    string `json:"read,omitempty"` // the value
	// Kind is copy, plus, prefix or suffix, and Constant what was added. It is asked if the two values show no relation, and the read asked for the
	// row by this column (WHERE owner IS NULL); current if the server computes the value from the current one. An empty Kind says that there is neither.
	Kind     string `json:"kind,omitempty"`
	Constant string `json:"constant,omitempty"`
}

// appendRequest appends what is known of the statement's request.
func appendRequest(b []byte, e *Event) []byte {
	b = appendText(b, `,"params":`, e.Params)
	b = appendText(b, `,"request":`, e.Request)
	b = appendList(b, `,"tags":[`, e.Tags)
	for i, o := range e.Operands {
		b = append(b, begin(i, `,"operands":[`)...)
		b = appendString(append(b, `{"column":`...), o.Column)
		b = appendText(b, `,"role":`, string(o.Role))
		b = append(appendText(b, `,"value":`, o.Value), '}')
	}
	if len(e.Operands) > 0 {
		b = append(b, ']')
	}
	for i, d := range e.Derived {
		b = append(b, begin(i, `,"derived":[`)...)
		b = appendString(append(b, `{"column":`...), d.Column)
		b = appendString(append(b, `,"row":{"table":`...), d.Row.Table)
		b = appendString(append(b, `,"key":`...), d.Row.Key)
		b = appendUint(append(b, '}'), `,"t":`, d.Txn)
		b = appendUint(b, `,"n":`, uint64(d.N))
		b = appendText(b, `,"version":`, d.Version)
		b = appendText(b, `,"read":`, d.Read)
		b = appendText(b, `,"kind":`, d.Kind)
		b = append(appendText(b, `,"constant":`, d.Constant), '}')
	}
	if len(e.Derived) > 0 {
		b = append(b, ']')
	}
	return b
}

// begin is what stands in front of element i of a list.
func begin(i int, list string) string {
	if i > 0 {
		return ","
	}
	return list
}

// request reads what an event says of its request.
func (p *parser) request(e *Event, key string) (err error) {
	switch key {
	case "params":
		e.Params, err = p.str()
	case "request":
		e.Request, err = p.str()
	case "tags":
		err = p.list(&e.Tags)
	case "operands":
		err = p.array(func() error {
			e.Operands = append(e.Operands, Operand{})
			return p.operand(&e.Operands[len(e.Operands)-1])
		})
	case "derived":
		err = p.array(func() error {
			e.Derived = append(e.Derived, Derived{})
			return p.derived(&e.Derived[len(e.Derived)-1])
		})
	default:
		return unknownKey(key)
	}
	return err
}

func (p *parser) list(to *[]string) error {
	return p.array(func() error {
		s, err := p.str()
		*to = append(*to, s)
		return err
	})
}

func (p *parser) row(r *Row) error {
	return p.object(func(key string) (err error) {
		switch key {
		case "table":
			r.Table, err = word[string](p)
		case "key":
			r.Key, err = p.str()
		default:
			return unknownKey("row." + key)
		}
		return err
	})
}

func (p *parser) operand(o *Operand) error {
	return p.object(func(key string) (err error) {
		switch key {
		case "column":
			o.Column, err = word[string](p)
		case "role":
			o.Role, err = word[Role](p)
		case "value":
			o.Value, err = p.str()
		default:
			return unknownKey("operands." + key)
		}
		return err
	})
}

func (p *parser) derived(d *Derived) error {
	return p.object(func(key string) (err error) {
		switch key {
		case "column":
			d.Column, err = word[string](p)
		case "row":
			err = p.row(&d.Row)
		case "t":
			d.Txn, err = p.uint()
		case "n":
			d.N, err = p.small()
		case "version":
			d.Version, err = p.str()
		case "read":
			d.Read, err = p.str()
		case "kind":
			d.Kind, err = word[string](p)
		case "constant":
			d.Constant, err = p.str()
		default:
			return unknownKey("derived." + key)
		}
		return err
	})
}

// requestWord reads one of the text form's words about requests, with its value. ok is false for any other word.
func requestWord(e *Event, word string, next func() (string, error)) (ok bool, err error) {
	role := Role(word)
	switch role {
	case RoleSet, RoleComputed, RoleUnknown, RoleTime, RoleNull, RoleEqual, RoleIsNull, RoleRange, RoleChecked:
		v, err := next()
		column, value, _ := strings.Cut(v, "=")
		e.Operands = append(e.Operands, Operand{column, role, value})
		return true, err
	}
	switch word {
	case "request":
		e.Request, err = next()
		return true, err
	case "derived":
		v, err := next()
		if err != nil {
			return true, err
		}
		f := strings.Split(v+"::::", ":")
		row, version, _ := strings.Cut(f[1], "@")
		txn, n, _ := strings.Cut(f[2], ".")
		d := Derived{Column: f[0], Row: rowText(row), Version: version, Kind: f[3], Constant: f[4], Read: f[5]}
		if d.Txn, err = strconv.ParseUint(txn, 10, 64); err == nil {
			d.N, err = strconv.Atoi(n)
		}
		e.Derived = append(e.Derived, d)
		return true, err
	}
	return false, nil
}
