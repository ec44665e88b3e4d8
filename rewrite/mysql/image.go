package mysql

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// Images of the versions that a write makes and replaces go to the log, for the columns that predicates read:
//
//	room=1,guest=x616e6e,hour=2026-11-22T09:00:00
//
// Of a column whose values wirecheck does not compare, the image tells whether it is NULL. Texts are an x and the hex form of their UTF-8, and bytes that of themselves; N is NULL, and ! what is not known. The value of an AUTO_INCREMENT column of a new
// row is not known before the server has answered.
//
// An INSERT logs its rows, too, where their images are wanted. The servers evaluate the values of a row in their order, and a value may
// name columns that were set before it (MySQL manual, INSERT), so the last one of each row, wc_writers, sees what the others became.

// maxImage is how many bytes a text has at most that is part of an image.
const maxImage = 96

// maxImagedRows is how many rows an INSERT has at most of which images are taken, so that the log takes them.
const maxImagedRows = 100

// image is SQL text for the values of the wanted columns of a row; empty if there are none. known says of which columns it is certain that
// they already have the values that they keep.
func (s *scene) image(src *source, known func(*rewrite.Attribute) bool) string {
	return s.imageOf(src, func(a *rewrite.Attribute) string {
		if !known(a) {
			return ""
		}
		return stored(src, a)
	})
}

// imageOf is image with the SQL text that value gives for a column; empty if that is not certain.
func (s *scene) imageOf(src *source, value func(*rewrite.Attribute) string) string {
	var b strings.Builder
	for _, name := range s.r.wanted.Columns(src.rel, src.table()) {
		a := src.column(name)
		if a == nil || HiddenColumn(a.Name) || a.Generated || s.r.flavor == TiDB && (kindOf(a) == condition.Other || typeName(a.Type) == "timestamp") {
			continue
		}
		text := value(a)
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(",',',")
		}
		b.WriteString("'" + escapeName(a.Name) + "='," + text)
	}
	if b.Len() == 0 {
		return ""
	}
	return "CONCAT(" + b.String() + ")"
}

// stored is SQL text for the value that a column has.
func stored(src *source, a *rewrite.Attribute) string {
	ref := src.ref + "." + mysqlsyntax.Quote(a.Name)
	switch kindOf(a) {
	case condition.Folded:
		return fmt.Sprintf("IFNULL(IF(OCTET_LENGTH(%s)>%d,'!',%s),'N')", ref, maxImage, inHex(inUTF8(ref, a)))
	case condition.Bytes:
		return fmt.Sprintf("IFNULL(IF(OCTET_LENGTH(%s)>%d,'!',CONCAT('x',HEX(%[1]s))),'N')", ref, maxImage)
	case condition.Timestamp:
		if typeName(a.Type) == "timestamp" { // in UTC, whatever the session's time zone is
			return fmt.Sprintf("IFNULL(IF(UNIX_TIMESTAMP(%s)=0,'!',REPLACE('1970-01-01 00:00:00'+INTERVAL UNIX_TIMESTAMP(%[1]s) SECOND,' ','T')),'N')", ref)
		}
		return "IFNULL(REPLACE(" + ref + ",' ','T'),'N')"
	case condition.UUID:
		return "IFNULL(CONCAT(" + ref + "),'N')" // N is no UUID
	case condition.Other: // conditions ask whether it is NULL, and nothing else
		return "IF(" + ref + " IS NULL,'N','!')"
	}
	return "IFNULL(" + ref + ",'N')"
}

// checked adds whether the server checks foreign keys to the image of a new row, if that is wanted.
func (s *scene) checked(src *source, image string) string {
	if len(src.rel.References) == 0 || !s.r.wanted.Everything() && !slices.Contains(s.r.wanted.Columns(src.rel, src.table()), condition.ForeignKeys) {
		return image
	}
	if image != "" {
		image += ",',',"
	}
	return "CONCAT(" + image + "'" + condition.ForeignKeys + "=',IF(" + condition.ForeignKeys + ",1,0))"
}

func inHex(text string) string { return "CONCAT('x',HEX(" + text + "))" }

// readImage makes the text form of an image of what the log has.
func readImage(text string) (string, error) {
	if text == "-" {
		return "", nil
	}
	var b []byte
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name, err := unescapeName(name)
		if !ok || err != nil {
			return "", fmt.Errorf("image %q is not understood", text)
		}
		switch {
		case value == "!", strings.HasPrefix(value, "0000-"): // a zero date may be NULL to a condition (MySQL manual, 14.4.2)
		case value == "N":
			b = condition.AppendColumn(b, name, nil)
		case strings.HasPrefix(value, "x"):
			raw, err := hex.DecodeString(value[1:])
			if err != nil {
				return "", fmt.Errorf("image %q is not understood", text)
			}
			value = string(raw)
			b = condition.AppendColumn(b, name, &value)
		default:
			b = condition.AppendColumn(b, name, &value)
		}
	}
	return string(b), nil
}

// columnsOfInsert are the names of the columns to which an INSERT gives values, in their order.
func columnsOfInsert(n *ast.InsertStmt, src *source) (names []string) {
	for _, c := range n.Columns {
		names = append(names, c.Name.O)
	}
	if len(names) > 0 {
		return names
	}
	for _, c := range src.rel.Columns {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// given are the columns to which every row of an INSERT gives a value that the row keeps, and those that have a constant by default: the servers fill a
// row with its defaults first. A column that
// the server counts is one where the answer does not tell its number: see counts.
func (s *draft) given(n *ast.InsertStmt, src *source) func(*rewrite.Attribute) bool {
	names, told := columnsOfInsert(n, src), s.auto(n, src) != "" || s.r.flavor == TiDB
	return func(a *rewrite.Attribute) bool {
		for i, name := range names {
			if !strings.EqualFold(name, a.Name) || a.Auto && told {
				continue
			}
			for _, row := range n.Lists {
				if i >= len(row) {
					return false
				}
				if d, standard := row[i].(*ast.DefaultExpr); standard && (d.Name != nil || !a.Fixed) {
					return false
				}
			}
			return true
		}
		return a.Fixed && !a.Auto
	}
}

// newImage is the image of a new row: of the columns of which it is known that they have their values, and of those that are the time of the statement.
func (s *draft) newImage(n *ast.InsertStmt, src *source, known func(*rewrite.Attribute) bool) string {
	names := columnsOfInsert(n, src)
	return s.checked(src, s.imageOf(src, func(a *rewrite.Attribute) string {
		switch {
		case known(a) && a.Auto:
			return "IF(" + counts(src, a) + ",'!'," + stored(src, a) + ")"
		case known(a):
			return stored(src, a)
		}
		return byDefault(n, names, a)
	}))
}

// byDefault is SQL text for the value of a column that is the time of the statement by default, where an INSERT gives values to the named ones; empty for others. The servers fill it in when the
// values of the statement are evaluated.
func byDefault(n *ast.InsertStmt, names []string, a *rewrite.Attribute) string {
	i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, a.Name) })
	if !a.Clock || i >= 0 && (n.Select != nil || slices.ContainsFunc(n.Lists, func(row []ast.ExprNode) bool {
		if i >= len(row) {
			return len(row) > 0 // an empty row has the defaults
		}
		d, standard := row[i].(*ast.DefaultExpr)
		return !standard || d.Name != nil
	})) {
		return ""
	}
	clock := "NOW(" + sizeOf(a.Type) + ")"
	if typeName(a.Type) == "timestamp" { // in UTC, as stored has it
		clock = "UTC_TIMESTAMP(" + sizeOf(a.Type) + ")"
	}
	return "REPLACE(" + clock + ",' ','T')"
}

// newRow is the SQL text that appends the entry of a new row to the log; empty if no image is wanted of the table's rows.
func (s *draft) newRow(n *ast.InsertStmt, src *source) string {
	if n.IgnoreErr && len(n.OnDuplicate) > 0 || n.IsReplace && (n.Select != nil || s.r.flavor == TiDB) || len(n.Lists) > maxImagedRows || s.r.flavor == TiDB && (n.IgnoreErr || len(n.OnDuplicate) > 0) {
		return "" // on TiDB the answer would not tell which entries are of the last attempt
	}
	if n.Select != nil {
		return s.selectedRow(n, src)
	}
	given := s.given(n, src)
	image := s.newImage(n, src, given)
	auto := s.auto(n, src)
	if image == "" {
		if !s.r.wanted.Rows(src.table()) {
			return ""
		}
		image = "'-'"
	}
	name := nameOf(src, true)
	for _, c := range src.rel.Key {
		switch a := src.column(c); {
		case a == nil:
			name = ""
		case a.Name == auto && len(src.rel.Key) == 1:
			name = awaited(auto)
		case !given(a):
			name = ""
		case a.Auto && name != "":
			name = ",IF(" + counts(src, a) + ",'',CONCAT(" + name[1:] + "))"
		}
	}
	return newEntry(src, src.ref+"."+columnRowID, image, name)
}

// counts is SQL text for whether the server will count on in a column of a new row: in the place of 0 and NULL.
func counts(src *source, a *rewrite.Attribute) string {
	return "NOT IFNULL(" + src.ref + "." + mysqlsyntax.Quote(a.Name) + ">0,0)"
}

// awaited is the name of a new row whose number the server's answer tells.
func awaited(auto string) string { return ",' " + escapeName(auto) + "=!'" }

func newEntry(src *source, id, image, name string) string {
	return "(@wc_log:=CONCAT(@wc_log,'I " + escapeName(src.table()) + " '," + id + ",' 0: '," + stampMark + ",' '," + image + name + ",';'))"
}

// selectedRow is newRow for the row of literals that SELECT without a FROM clause gives: they stand in the place of the columns. It is empty where
// the columns may take them in another form.
func (s *draft) selectedRow(n *ast.InsertStmt, src *source) string {
	q, ok := n.Select.(*ast.SelectStmt)
	if !ok || q.Kind != ast.SelectStmtKindSelect || q.From != nil || q.Distinct || q.GroupBy != nil || q.OrderBy != nil || q.Having != nil || len(n.OnDuplicate) > 0 {
		return ""
	}
	names := columnsOfInsert(n, src)
	literals := map[string]string{}
	for i, f := range q.Fields.Fields {
		if i >= len(names) || f.WildCard != nil {
			return ""
		}
		if a := src.column(names[i]); a != nil && !a.Auto && !a.Generated {
			if text, ok := literalFor(f.Expr, a); ok {
				literals[a.Name] = text
			}
		}
	}
	known := func(a *rewrite.Attribute) bool { return literals[a.Name] != "" }
	image, name := s.newImage(n, src, known), nameOf(src, true)
	if image == "" {
		return ""
	}
	switch auto := s.auto(n, src); {
	case auto != "" && slices.Equal(src.rel.Key, []string{auto}):
		name = awaited(auto)
	case slices.ContainsFunc(src.rel.Key, func(c string) bool { a := src.column(c); return a == nil || !known(a) }):
		name = ""
	}
	var places []string
	for column, text := range literals {
		places = append(places, src.ref+"."+mysqlsyntax.Quote(column), text)
	}
	put := strings.NewReplacer(places...)
	s.copies = true
	return newEntry(src, newRowID, put.Replace(image), put.Replace(name))
}

// newRowID is the variable in which a SELECT keeps the id that it gives to the row.
const newRowID = "@wc_r"

// literalFor gives SQL text for the value that a column certainly has of a literal.
func literalFor(e ast.ExprNode, a *rewrite.Attribute) (string, bool) {
	v, ok := unwrapped(e).(*mysqlsyntax.Value)
	if !ok {
		return "", false
	}
	size, scale, _ := strings.Cut(sizeOf(a.Type), ",")
	most, _ := strconv.Atoi(size) // 0 is too few for all
	value := v.V
	if t, text := value.(string); text && kindOf(a) == condition.Number && condition.Whole(t) && t[0] != '-' { // as PHP sends it
		value, _ = strconv.ParseInt(t, 10, 64)
	}
	switch name := typeName(a.Type); x := value.(type) {
	case nil:
		return "NULL", !a.Required
	case int64:
		digits, _ := strconv.Atoi(scale)
		text := strconv.FormatInt(x, 10)
		if name == "decimal" {
			return "CAST(" + text + " AS DECIMAL(" + sizeOf(a.Type) + "))", len(text) <= most-digits
		}
		return text, strings.HasSuffix(name, "int") && (x < 128 || name == "int" && x < 1<<31 || name == "bigint")
	case string:
		text := "'" + x + "'"
		if !ascii(x) || strings.ContainsAny(x, `'\`+"\x00\x01") {
			return "", false
		}
		switch name {
		case "varchar", "varbinary":
			return text, len(x) <= most
		case "char":
			return text, len(x) <= most && !strings.HasSuffix(x, " ")
		case "enum":
			return text, strings.Contains(a.Type, text)
		case "date", "datetime":
			return "CAST(" + text + " AS " + a.Type + ")", kindOf(a).Reads(x) && !strings.Contains(x, ".")
		}
		return text, strings.HasSuffix(name, "text") && len(x) <= maxImage
	}
	return "", false
}

// auto is the column of a single new row (of VALUES, or selectedRow) of which the server's answer brings the value.
func (s *draft) auto(n *ast.InsertStmt, src *source) string {
	if len(n.Lists) != 1 && n.Select == nil || len(n.OnDuplicate) > 0 || strings.Contains(strings.ToUpper(s.plan.Text), "LAST_INSERT_ID") {
		return ""
	}
	for _, c := range src.rel.Columns {
		if c.Auto {
			return c.Name
		}
	}
	return ""
}

// Numbered completes the entry of the one row that a statement inserted: column got the number id.
func Numbered(list []history.Access, column string, id uint64) {
	for i := range list {
		a := &list[i]
		if a.Op != history.OpInsert {
			continue
		}
		if id == 0 || id > 1<<62 || len(list) > 1 { // a negative one
			a.Name = ""
			continue
		}
		text := strconv.FormatUint(id, 10)
		a.Name = strings.Replace(a.Name, "=!", "="+text, 1)
		a.Image = string(condition.AppendColumn([]byte(a.Image), column, &text))
	}
}

// Want asks for images of what a predicate read needs from now on.
func (r *Rewriter) Want(a *rewrite.Ask) { r.wanted.Ask(a) }

// WantAll asks for images of all columns, so that what is captured does not depend on what was asked before. It is called before the first
// statement.
func (r *Rewriter) WantAll() { r.wanted.Always = true }

// WantEarly asks for them at first. It is called before the first statement.
func (r *Rewriter) WantEarly(e *rewrite.Early) { r.wanted.Early = e }

// Generation grows whenever statements planned before should be planned again, as more is wanted.
func (r *Rewriter) Generation() uint64 { return r.wanted.Generation() }
