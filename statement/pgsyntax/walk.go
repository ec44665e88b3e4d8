package pgsyntax

import (
	"reflect"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Walk visits every message of a tree, parents first, as long as visit says to go into it.
func Walk(m proto.Message, visit func(proto.Message) bool) {
	if m != nil && m.ProtoReflect().IsValid() {
		walk(m, visit)
	}
}

func walk(m proto.Message, visit func(proto.Message) bool) {
	if !visit(m) {
		return
	}
	// What long lists are made of goes past the reflection of protocol buffers, which takes ten times as long.
	switch x := m.(type) {
	case *pg.Node:
		if x.Node != nil {
			walk(member(x.Node), visit)
		}
	case *pg.A_Const:
		if x.Val != nil {
			walk(member(x.Val), visit)
		}
	case *pg.List:
		for _, item := range x.Items {
			walk(item, visit)
		}
	case *pg.Integer, *pg.Float, *pg.Boolean, *pg.String, *pg.BitString: // these have no parts
	default:
		WalkParts(m.ProtoReflect(), visit)
	}
}

// member is the message in a oneof field, whose wrapper is a struct with one field.
func member(wrapper any) proto.Message {
	return reflect.ValueOf(wrapper).Elem().Field(0).Interface().(proto.Message)
}

// WalkParts visits what is below m.
func WalkParts(m protoreflect.Message, visit func(proto.Message) bool) {
	EachPart(m, func(part protoreflect.Message) { walk(part.Interface(), visit) })
}

// EachPart calls f for each message right below m.
func EachPart(m protoreflect.Message, f func(protoreflect.Message)) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			l := v.List()
			for i := range l.Len() {
				f(l.Get(i).Message())
			}
		default:
			f(v.Message())
		}
		return true
	})
}

// WalkAll visits the messages of several trees.
func WalkAll(nodes []*pg.Node, visit func(proto.Message) bool) {
	for _, n := range nodes {
		Walk(n, visit)
	}
}

// Same compares two trees, places in the text aside.
func Same(a, b proto.Message) bool {
	switch x := a.(type) { // as walk does
	case *pg.Node:
		if y, ok := b.(*pg.Node); ok && x != nil && y != nil && x.Node != nil && y.Node != nil {
			return Same(member(x.Node), member(y.Node))
		}
	case *pg.A_Const:
		if y, ok := b.(*pg.A_Const); ok && x != nil && y != nil && x.Val != nil && y.Val != nil {
			return x.Isnull == y.Isnull && Same(member(x.Val), member(y.Val))
		}
	case *pg.List:
		if y, ok := b.(*pg.List); ok && x != nil && y != nil {
			return slices.EqualFunc(x.Items, y.Items, func(a, b *pg.Node) bool { return Same(a, b) })
		}
	case *pg.Integer:
		if y, ok := b.(*pg.Integer); ok && x != nil && y != nil {
			return x.Ival == y.Ival
		}
	case *pg.String:
		if y, ok := b.(*pg.String); ok && x != nil && y != nil {
			return x.Sval == y.Sval
		}
	}
	return sameFields(a.ProtoReflect(), b.ProtoReflect())
}

func sameFields(a, b protoreflect.Message) bool {
	if a.IsValid() != b.IsValid() || a.Descriptor() != b.Descriptor() {
		return false
	}
	equal, n := true, 0
	a.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if place(fd) {
			return true
		}
		n++
		equal = b.Has(fd) && sameValue(fd, v, b.Get(fd))
		return equal
	})
	if !equal {
		return false
	}
	b.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !place(fd) {
			n--
		}
		return true
	})
	return n == 0
}

func sameValue(fd protoreflect.FieldDescriptor, a, b protoreflect.Value) bool {
	message := fd.Kind() == protoreflect.MessageKind
	switch {
	case fd.IsList():
		x, y := a.List(), b.List()
		if x.Len() != y.Len() {
			return false
		}
		for i := range x.Len() {
			if message && !Same(x.Get(i).Message().Interface(), y.Get(i).Message().Interface()) || !message && !x.Get(i).Equal(y.Get(i)) {
				return false
			}
		}
		return true
	case message:
		return Same(a.Message().Interface(), b.Message().Interface())
	default:
		return a.Equal(b)
	}
}

// place tells fields that hold a place in the text.
func place(fd protoreflect.FieldDescriptor) bool {
	switch fd.Name() {
	case "location", "stmt_location", "stmt_len", "arg_location":
		return fd.Kind() == protoreflect.Int32Kind
	}
	return false
}
