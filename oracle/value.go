package oracle

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"wirecheck/history"
	"wirecheck/product"
	"wirecheck/statement/condition"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
	"wirecheck/trace/secret"
)

// Value is a column's value: as an answer gave it to the client, or as a statement assigned it.
type Value struct {
	Column string `json:"column"`
	Text   string `json:"text,omitempty"`
}

// maxValue is how long a value is that a finding shows.
const maxValue = 64

// ValueOf is the value of a column among others, empty if it is not there.
func ValueOf(values []Value, column string) string {
	if i := slices.IndexFunc(values, func(v Value) bool { return strings.EqualFold(v.Column, column) }); i >= 0 {
		return values[i].Text
	}
	return ""
}

// Values are the values of an image, as history.Access.Values has them, in the order of the columns.
func Values(image string) (list []Value) {
	if image == "" {
		return nil
	}
	values, err := condition.ParseImage(image)
	if err != nil {
		return nil
	}
	for _, column := range slices.Sorted(maps.Keys(values)) {
		if v := values[column]; v != nil {
			list = append(list, Value{column, *v})
		}
	}
	return list
}

// Params are the parameters of an image, as history.Event.Params has them, in order: "$1 = 4", "$2 = 'W'"; of the MySQL family "?1 = 4".
func Params(image string, p *product.Product) (list []string) {
	sign := "$"
	if p.Dialect == product.DialectMySQL {
		sign = "?"
	}
	for i, v := range parameters(image) {
		text := "NULL"
		switch {
		case v.Unknown:
			continue
		case flow.IsNumber(v.Text):
			text = v.Text
		case strings.Contains(v.Text, `\`):
			continue
		case !v.Null:
			text = "'" + strings.ReplaceAll(v.Text, "'", "''") + "'"
		}
		list = append(list, sign+strconv.Itoa(i+1)+" = "+text)
	}
	return list
}

// withParams is the statement's text with the values in place of its parameters, as far as they are known.
func (s *Statement) withParams(p *product.Product) string {
	if len(s.Params) == 0 {
		return s.SQL
	}
	values := map[string]string{}
	for _, param := range s.Params {
		name, text, _ := strings.Cut(param, " = ")
		values[name] = text
	}
	var b strings.Builder
	asked := 0
	for t := range lex.Tokens(s.SQL, lex.Of(p.Dialect)) {
		text := t.Text
		if t.Kind == lex.Placeholder {
			name := text
			if asked++; text == "?" {
				name += strconv.Itoa(asked)
			}
			if v, ok := values[name]; ok {
				text = v
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// Assigned are the columns that an UPDATE of one table assigns, with the values that the application sent: a number, a text or a parameter that stands
// alone. Text is empty for another value, and for a secret. The list is nil for a statement that is not plainly such an UPDATE.
func Assigned(sql, params string, p *product.Product) (list []Value) {
	tokens := significant(sql, p)
	if len(tokens) == 0 || !tokens[0].Is("update") {
		return nil
	}
	at, asked := 1, 0 // placeholders in front of at
	for ; at < len(tokens) && !tokens[at].Is("set"); at++ {
		if k := tokens[at].Kind; strings.ContainsAny(tokens[at].Text, ",(") || tokens[at].Is("join") || k == lex.Placeholder {
			return nil
		}
	}
	values := parameters(params)
	for at++; at < len(tokens); at++ {
		column := ""
		for ; at < len(tokens) && tokens[at].Text != "="; at++ {
			switch k := tokens[at].Kind; {
			case k == lex.Word || k == lex.Name:
				if column = strings.Trim(tokens[at].Text, "\"`"); k == lex.Word && p.Dialect == product.DialectPostgres {
					column = strings.ToLower(column)
				}
			case tokens[at].Text != ".":
				return nil
			}
		}
		first, depth, before := at+1, 0, asked
		for at++; at < len(tokens) && (depth > 0 || tokens[at].Text != "," && !endsValue(tokens[at])); at++ {
			switch {
			case tokens[at].Text == "(":
				depth++
			case tokens[at].Text == ")":
				depth--
			case tokens[at].Kind == lex.Placeholder:
				asked++
			}
		}
		if column == "" || first >= at {
			return nil
		}
		v := Value{Column: column}
		if !secret.Column(column) {
			v.Text = constant(tokens[first:at], values, before)
		}
		if list = append(list, v); at >= len(tokens) || tokens[at].Text != "," {
			break
		}
	}
	return list
}

func endsValue(t lex.Token) bool {
	return t.Is("where") || t.Is("from") || t.Is("returning") || t.Is("order") || t.Is("limit")
}

// constant is the value that the tokens are, if it is certain: what a text in other quotes says, or one with a backslash, depends on settings of the session.
func constant(tokens []lex.Token, params []flow.Param, asked int) string {
	sign := ""
	if len(tokens) == 2 && tokens[0].Text == "-" && tokens[1].Kind == lex.Number {
		sign, tokens = "-", tokens[1:]
	}
	if len(tokens) != 1 {
		return ""
	}
	text := tokens[0].Text
	switch tokens[0].Kind {
	case lex.Number:
		text = sign + text
	case lex.String:
		if len(text) < 2 || text[0] != '\'' || strings.ContainsAny(text, `\`) {
			return ""
		}
		text = strings.ReplaceAll(text[1:len(text)-1], "''", "'")
	case lex.Placeholder:
		n, err := strconv.Atoi(strings.TrimPrefix(text, "$"))
		if err != nil {
			n = asked + 1
		}
		if n < 1 || n > len(params) || params[n-1].Unknown || params[n-1].Null {
			return ""
		}
		text = params[n-1].Text
	default:
		return ""
	}
	if len(text) > maxValue {
		return ""
	}
	return text
}

// parameters are the values of an image as history.Event.Params has them.
func parameters(image string) (list []flow.Param) {
	if image == "" {
		return nil
	}
	values, err := condition.ParseImage(image)
	if err != nil {
		return nil
	}
	for number, v := range values {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 1000 {
			return nil
		}
		for len(list) < n {
			list = append(list, flow.Param{Unknown: true})
		}
		if list[n-1] = (flow.Param{Null: v == nil}); v != nil {
			list[n-1].Text = *v
		}
	}
	return list
}

// HideValues takes the values out of a finding that answers, parameters and assignments have. The texts of statements stay.
func (f *Finding) HideValues() {
	for i := range f.Edges {
		f.Edges[i].FromValues, f.Edges[i].ToValues = nil, nil
	}
	for i := range f.Transactions {
		for k := range f.Transactions[i].Statements {
			f.Transactions[i].Statements[k].Params = nil
		}
	}
}

// Offered are the values that an INSERT of one row gives its columns, as far as they are literals or parameters; theTime stands for the time at which it was
// sent, in nanoseconds since 1970. takes says that, if the row is there already, the statement gives its columns nothing else. The list is nil for several rows.
func Offered(sql, params string, at int64, p *product.Product) (values map[string]string, takes bool) {
	var list []history.Operand
	takes = true
	for _, l := range flow.Literals(sql, lex.Of(p.Dialect), parameters(params)...) {
		switch {
		case l.Clause != "values":
			takes = false
		case l.Column == "", slices.ContainsFunc(list, func(o history.Operand) bool { return o.Column == l.Column }):
			return nil, false
		default:
			list = append(list, history.Operand{Column: l.Column, Role: history.RoleSet, Value: l.Value})
		}
	}
	flow.Times(list, at)
	values = map[string]string{}
	for _, o := range list {
		if values[o.Column] = o.Value; o.Role == history.RoleTime {
			values[o.Column] = theTime
		}
	}
	return values, takes
}

const theTime = "\x00time"
