package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// concealer changes a text so that it means what it meant before its tables had the hidden columns, and so that what it
// updates is stamped. Each change is made twice: in the text and in the client's tree, and the server's reading of the
// changed text must equal the changed tree (see columns.go).
type concealer struct {
	*scene
	showing
	revision
}

// showing is what the relations of a statement show, hidden columns included.
type showing struct {
	*scene
	asks   bool // the statement may ask for its own text
	tables map[*pg.RangeVar]*item
}

// revision is the changed text.
type revision struct {
	*scene
	doubts
	edits []rewrite.Edit
	err   error // what was put in cannot be parsed
}

func newConcealer(s *scene) *concealer {
	return &concealer{scene: s, showing: showing{scene: s}, revision: revision{scene: s}}
}

// shows notes that the client will see hidden columns.
func (k *revision) shows(format string, args ...any) {
	k.missing("the hidden columns show: "+format, args...)
}

func (k *revision) edit(at, cut int, add string) {
	k.edits = append(k.edits, rewrite.Edit{At: at, Cut: cut, Add: add})
}

// visible gives the columns of a relation that are not hidden.
func visible(rel *rewrite.Relation) []rewrite.Attribute {
	return slices.DeleteFunc(slices.Clone(rel.Columns), func(a rewrite.Attribute) bool { return a.Hidden })
}

func hides(rel *rewrite.Relation) bool {
	return slices.ContainsFunc(rel.Columns, func(a rewrite.Attribute) bool { return a.Hidden })
}

// firstHidden is the place of the first hidden column.
func firstHidden(rel *rewrite.Relation) int {
	return slices.IndexFunc(rel.Columns, func(a rewrite.Attribute) bool { return a.Hidden })
}

// relation finds the table that a name means, if it has hidden columns; doubt says that it may.
func (k *showing) relation(rv *pg.RangeVar) (rel *rewrite.Relation, doubt string) {
	if rv == nil || !k.watched(rv) {
		return nil, ""
	}
	rel, why := k.resolve(rv)
	if rel != nil {
		return rel, ""
	}
	for _, r := range k.catalog.Named(rv.Relname) {
		if hides(r) {
			return nil, why
		}
	}
	return nil, ""
}

func (k *concealer) nodes(list []*pg.Node, sc *scope) {
	for _, n := range list {
		k.node(n, sc)
	}
}

// row conceals what an expression that may be a whole row shows, where a record does as well.
func (k *concealer) row(n *pg.Node, sc *scope) {
	if ref := n.GetColumnRef(); ref != nil {
		if i := k.wholeRow(ref, sc); i != nil && k.record(n, i) {
			return
		}
	}
	k.node(n, sc)
}

// node conceals what one part of a tree shows.
func (k *concealer) node(n *pg.Node, sc *scope) {
	switch e := n.GetNode().(type) {
	case nil:
	case *pg.Node_SelectStmt:
		k.selectStmt(e.SelectStmt, sc)
	case *pg.Node_InsertStmt:
		k.insertStmt(e.InsertStmt, sc)
	case *pg.Node_UpdateStmt:
		k.updateStmt(e.UpdateStmt, sc)
	case *pg.Node_DeleteStmt:
		k.deleteStmt(e.DeleteStmt, sc)
	case *pg.Node_MergeStmt:
		k.mergeStmt(e.MergeStmt, sc)
	case *pg.Node_CopyStmt:
		k.copyStmt(e.CopyStmt, sc)
	case *pg.Node_TableLikeClause:
		if rel, doubt := k.relation(e.TableLikeClause.Relation); doubt != "" || rel != nil && hides(rel) {
			k.shows("LIKE copies them")
		}
	case *pg.Node_ColumnRef:
		if i := k.wholeRow(e.ColumnRef, sc); i != nil {
			k.shows("a whole row of %s", i.ref)
		}
	case *pg.Node_SubLink:
		k.node(e.SubLink.Testexpr, sc)
		q := e.SubLink.Subselect
		if s := q.GetSelectStmt(); e.SubLink.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK && s != nil {
			k.exists(s, sc)
			return
		}
		k.node(q, &scope{up: sc})
	case *pg.Node_FuncCall:
		f := e.FuncCall
		for _, a := range f.Args {
			if wholeRows[pgsyntax.LastName(f.Funcname)] && k.function(pgsyntax.LastName(f.Funcname))&rewrite.FunctionUser == 0 {
				k.row(a, sc)
			} else {
				k.node(a, sc)
			}
		}
		k.nodes(f.AggOrder, sc)
		k.node(f.AggFilter, sc)
		k.parts(f.Over.ProtoReflect(), sc)
	case *pg.Node_TypeCast:
		if name := pgsyntax.LastName(e.TypeCast.GetTypeName().GetNames()); name == "text" || name == "varchar" {
			k.row(e.TypeCast.Arg, sc)
			return
		}
		k.node(e.TypeCast.Arg, sc)
	case *pg.Node_NullTest:
		k.row(e.NullTest.Arg, sc)
	case *pg.Node_AExpr:
		k.row(e.AExpr.Lexpr, sc)
		k.row(e.AExpr.Rexpr, sc)
	case *pg.Node_MultiAssignRef: // its source comes again for each column
		edits := k.edits
		k.node(e.MultiAssignRef.Source, sc)
		if e.MultiAssignRef.Colno > 1 {
			k.edits = edits
		}
	case *pg.Node_RowExpr:
		e.RowExpr.Args = k.expandList(e.RowExpr.Args, sc)
	case *pg.Node_AIndirection:
		if e.AIndirection.Arg.GetColumnRef() == nil || len(e.AIndirection.Indirection) > 0 && e.AIndirection.Indirection[0].GetAStar() != nil {
			k.node(e.AIndirection.Arg, sc)
		}
		k.nodes(e.AIndirection.Indirection, sc)
	default:
		k.parts(n.ProtoReflect(), sc)
	}
}

// parts goes on below a message.
func (k *concealer) parts(m protoreflect.Message, sc *scope) {
	if !m.IsValid() {
		return
	}
	pgsyntax.EachPart(m, func(part protoreflect.Message) {
		if n, ok := part.Interface().(*pg.Node); ok {
			k.node(n, sc)
			return
		}
		k.message(part.Interface(), sc)
	})
}

func (k *concealer) message(m proto.Message, sc *scope) {
	switch s := m.(type) {
	case *pg.SelectStmt:
		k.selectStmt(s, sc)
	case *pg.CopyStmt:
		k.copyStmt(s, sc)
	default:
		k.parts(m.ProtoReflect(), sc)
	}
}
