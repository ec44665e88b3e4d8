package pgsyntax

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Walk visits every message of a tree, parents first, as long as visit says to go into it.
func Walk(m proto.Message, visit func(proto.Message) bool) {
	if m == nil || !m.ProtoReflect().IsValid() {
		return
	}
	walkMessage(m.ProtoReflect(), visit)
}

func walkMessage(m protoreflect.Message, visit func(proto.Message) bool) {
	if visit(m.Interface()) {
		WalkParts(m, visit)
	}
}

// WalkParts visits what is below m.
func WalkParts(m protoreflect.Message, visit func(proto.Message) bool) {
	EachPart(m, func(part protoreflect.Message) { walkMessage(part, visit) })
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
func Same(a, b protoreflect.Message) bool {
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
			if message && !Same(x.Get(i).Message(), y.Get(i).Message()) || !message && !x.Get(i).Equal(y.Get(i)) {
				return false
			}
		}
		return true
	case message:
		return Same(a.Message(), b.Message())
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
