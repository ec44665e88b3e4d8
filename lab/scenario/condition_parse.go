package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
)

// ParseCondition reads a condition:
//
//	condition = conjunction { "or" conjunction }
//	conjunction = negated { "and" negated }
//	negated = [ "not" ] ( "(" condition ")" | term )
//	term = "rows(" STEP ")" ( "are" | "contain" | "lack" ) ( ROW { "," ROW } | "none" )
//	     | ( "count(" | "affected(" ) STEP ")" "=" NUMBER
//	     | "ok(" STEP ")" | "failed(" STEP ")" [ "with" CODE { "," CODE } ] | "blocked(" STEP ")"
//	     | "found(" ORACLE ")" | "crashed"
//	ROW = VALUE { "|" VALUE }
func ParseCondition(text string) (Condition, error) {
	p := &conditionParser{text: text}
	if err := p.advance(); err != nil {
		return Condition{}, err
	}
	root, err := p.junction("or")
	if err != nil {
		return Condition{}, err
	}
	if p.kind != endOfCondition {
		return Condition{}, p.expected("and, or, or the end of the line")
	}
	return Condition{root}, nil
}

// The kinds of tokens in a condition, besides the punctuation itself.
const (
	wordInCondition   = 'w'
	stringInCondition = 's' // '...'
	nameInCondition   = 'n' // "..."
	endOfCondition    = 'e'
)

type conditionParser struct {
	text  string
	at    int
	depth int
	kind  byte
	word  string
}

// advance reads the next token.
func (p *conditionParser) advance() error {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
	if p.at == len(p.text) {
		p.kind, p.word = endOfCondition, ""
		return nil
	}
	switch c := p.text[p.at]; c {
	case '(', ')', ',', '|', '=':
		p.kind, p.word = c, string(c)
		p.at++
		return nil
	case '\'', '"':
		return p.quoted(c)
	}
	end := p.at
	for end < len(p.text) && !strings.ContainsRune(" \t(),|='\"", rune(p.text[end])) {
		end++
	}
	p.kind, p.word = wordInCondition, p.text[p.at:end]
	p.at = end
	return nil
}

func (p *conditionParser) quoted(quote byte) error {
	p.kind = stringInCondition
	if quote == '"' {
		p.kind = nameInCondition
	}
	var b strings.Builder
	for i := p.at + 1; i < len(p.text); i++ {
		if p.text[i] != quote {
			b.WriteByte(p.text[i])
			continue
		}
		if i+1 < len(p.text) && p.text[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		p.word, p.at = b.String(), i+1
		return nil
	}
	return fmt.Errorf("the quote %c in %q is not closed", quote, p.text[p.at:])
}

func (p *conditionParser) expected(what string) error {
	if p.kind == endOfCondition {
		return fmt.Errorf("found the end of the line, expected %s", what)
	}
	return fmt.Errorf("found %q, expected %s", p.word, what)
}

func (p *conditionParser) is(word string) bool { return p.kind == wordInCondition && p.word == word }

// junction reads parts joined by the word; or binds less than and.
func (p *conditionParser) junction(word string) (node, error) {
	next := p.negated
	if word == "or" {
		next = func() (node, error) { return p.junction("and") }
	}
	first, err := next()
	if err != nil {
		return nil, err
	}
	parts := []node{first}
	for p.is(word) {
		if err := p.advance(); err != nil {
			return nil, err
		}
		part, err := next()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return first, nil
	}
	return junction{word, parts}, nil
}

const maxConditionDepth = 100

func (p *conditionParser) negated() (node, error) {
	if p.depth++; p.depth > maxConditionDepth {
		return nil, fmt.Errorf("more than %d parentheses and nots inside each other", maxConditionDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.is("not"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		of, err := p.negated()
		return negation{of}, err
	case p.kind == '(':
		if err := p.advance(); err != nil {
			return nil, err
		}
		inner, err := p.junction("or")
		if err != nil {
			return nil, err
		}
		return inner, p.take(')', ")")
	}
	return p.term()
}

// take goes over a token of the kind, or complains.
func (p *conditionParser) take(kind byte, what string) error {
	if p.kind != kind {
		return p.expected(what)
	}
	return p.advance()
}

func (p *conditionParser) term() (node, error) {
	const terms = "rows(STEP), count(STEP), affected(STEP), ok(STEP), failed(STEP), blocked(STEP), found(ORACLE), crashed, not or ("
	if p.kind != wordInCondition || !slices.Contains([]string{"rows", "count", "affected", "ok", "failed", "blocked", "found", "crashed"}, p.word) {
		return nil, p.expected(terms)
	}
	t := term{word: p.word}
	if err := p.advance(); err != nil || t.word == "crashed" {
		return t, err
	}
	if err := p.take('(', "( after "+t.word); err != nil {
		return nil, err
	}
	if p.kind != wordInCondition && p.kind != nameInCondition {
		return nil, p.expected("a name in the parentheses after " + t.word)
	}
	t.of = p.word
	if t.word == "found" {
		if err := oneOf("oracle", append([]string{"isolation"}, judgeNames...), t.of); err != nil {
			return nil, err
		}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.take(')', ")"); err != nil {
		return nil, err
	}
	err := p.rest(&t)
	return t, err
}

// rest reads what stands after the parentheses of a term.
func (p *conditionParser) rest(t *term) error {
	switch {
	case t.word == "rows":
		return p.rowList(t)
	case t.word == "count" || t.word == "affected":
		if err := p.take('=', "= and a number"); err != nil {
			return err
		}
		n, err := strconv.ParseInt(p.word, 10, 64)
		if p.kind != wordInCondition || err != nil || n < 0 {
			return p.expected("a number after =")
		}
		t.n = n
		return p.advance()
	case t.word == "failed" && p.is("with"):
		for {
			if err := p.advance(); err != nil {
				return err
			}
			if p.kind != wordInCondition {
				return p.expected("an error code after failed(...) with")
			}
			t.codes = append(t.codes, p.word)
			if err := p.advance(); err != nil || p.kind != ',' {
				return err
			}
		}
	}
	return nil
}

func (p *conditionParser) rowList(t *term) error {
	if p.kind != wordInCondition || !slices.Contains([]string{"are", "contain", "lack"}, p.word) {
		return p.expected("are, contain or lack after rows(...)")
	}
	t.how = p.word
	if err := p.advance(); err != nil {
		return err
	}
	if p.is("none") && t.how == "are" {
		return p.advance()
	}
	for {
		row, err := p.row()
		if err != nil {
			return err
		}
		t.rows = append(t.rows, row)
		if p.kind != ',' {
			return nil
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

func (p *conditionParser) row() ([]answer.Value, error) {
	var row []answer.Value
	for {
		if p.kind != wordInCondition && p.kind != stringInCondition || p.is("and") || p.is("or") || p.is("none") {
			return nil, p.expected("a value of a row, such as 1|10, NULL or 'some text'")
		}
		row = append(row, p.value())
		if err := p.advance(); err != nil || p.kind != '|' {
			return row, err
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

func (p *conditionParser) value() answer.Value {
	if p.is("NULL") {
		return nil
	}
	return answer.Value(p.word)
}
