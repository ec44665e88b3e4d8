package report

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// Printable is a copy of a finding of which every text can be printed (prose.Printable): what SQL, names and keys say never reaches a terminal, a
// document or a client's screen otherwise. Only JSON has the finding itself. Statements stay, which all forms print by prose.Statement or prose.Line.
func Printable(f oracle.Finding) oracle.Finding {
	printable(reflect.ValueOf(&f).Elem())
	return f
}

// printable does that with a part of a copy. What it changes behind a pointer or in a slice it copies first.
func printable(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(prose.Printable(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			printable(own.Elem())
			v.Set(own)
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			printable(own.Index(i))
		}
		v.Set(own)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).CanSet() && name != "SQL" && name != "Reference" {
				printable(v.Field(i))
			}
		}
	}
}

// writeJSON writes a value as JSON that says the same when a terminal shows it: characters that cannot be printed are escaped.
func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// escapeJSON escapes the characters of a JSON text that cannot be printed: they stand in strings only, but for line ends.
func escapeJSON(text []byte) []byte {
	bad := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if bytes.IndexFunc(text, bad) < 0 {
		return text
	}
	const digits = "0123456789abcdef"
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if bad(r) {
			for _, u := range utf16.Encode([]rune{r}) {
				out = append(out, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
			}
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}
