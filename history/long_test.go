package history

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// differ makes each text in v another one.
func differ(v reflect.Value, next func() string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			differ(v.Field(i), next)
		}
	case reflect.Slice:
		for i := range v.Len() {
			differ(v.Index(i), next)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			differ(v.Elem(), next)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.String() != "" {
			v.SetString(v.String() + next())
		}
	}
}

// TestLong: the texts of an event stay what they are while more is read than the buffer holds. Lines and records are read where they stand in it.
func TestLong(t *testing.T) {
	var want []Event
	n, size := 0, 0
	for size < 3<<20 {
		for _, e := range append(full(), compact()...) {
			differ(reflect.ValueOf(&e), func() string { n++; return strconv.Itoa(n * n) })
			want, size = append(want, e), size+len(AppendEvent(nil, &e))
		}
	}
	for form, data := range map[string][]byte{"JSON": encode(t, want), "binary": encodeBinary(t, want)} {
		got, _, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d events, want %d", form, len(got), len(want))
		}
		for i := range got {
			if d := cmp.Diff(want[i], got[i]); d != "" {
				t.Fatalf("%s, event %d (-want +got):\n%s", form, i, d)
			}
		}
	}
}
