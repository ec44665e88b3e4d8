package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement/pgsyntax"
)

// confined gives the bare names of the relations and functions that a definition changes, for all sessions, of what a Catalog has; there may be none.
// known reports whether it surely changes no others, nor the search path, nor anything of the server.
func confined(n *pg.Node) (names []string, known bool) {
	var what proto.Message // names the relations
	switch s := n.Node.(type) {
	case *pg.Node_CreateStmt: // with those that it refers to, inherits from or is a partition of
		what = s.CreateStmt
	case *pg.Node_CreateForeignTableStmt:
		what = s.CreateForeignTableStmt
	case *pg.Node_IndexStmt:
		what = s.IndexStmt.Relation
	case *pg.Node_CreateTableAsStmt:
		what = s.CreateTableAsStmt.Into.GetRel()
	case *pg.Node_SelectStmt:
		if into := firstArm(s.SelectStmt).GetIntoClause(); into != nil {
			what = into.Rel
		}
	case *pg.Node_ViewStmt:
		what = s.ViewStmt.View
	case *pg.Node_CreateSeqStmt:
		what = s.CreateSeqStmt.Sequence
	case *pg.Node_AlterSeqStmt:
		what = s.AlterSeqStmt.Sequence
	case *pg.Node_CreateTrigStmt:
		what = s.CreateTrigStmt
	case *pg.Node_RuleStmt:
		what = s.RuleStmt
	case *pg.Node_CreatePolicyStmt:
		what = s.CreatePolicyStmt.Table
	case *pg.Node_AlterPolicyStmt:
		what = s.AlterPolicyStmt.Table
	case *pg.Node_AlterTableStmt:
		if t := s.AlterTableStmt.Objtype; t != pg.ObjectType_OBJECT_INDEX && t != pg.ObjectType_OBJECT_TYPE && !slices.ContainsFunc(s.AlterTableStmt.Cmds, elsewhere) {
			what = s.AlterTableStmt
		}
	case *pg.Node_RenameStmt: // a table is known by its name to those that refer to it, and to which it does
		if s.RenameStmt.RenameType != pg.ObjectType_OBJECT_COLUMN || s.RenameStmt.RelationType != pg.ObjectType_OBJECT_TABLE {
			return nil, false
		}
		what = s.RenameStmt.Relation
	case *pg.Node_CreateFunctionStmt:
		return []string{pgsyntax.LastName(s.CreateFunctionStmt.Funcname)}, true
	case *pg.Node_AlterFunctionStmt:
		return []string{pgsyntax.LastName(s.AlterFunctionStmt.Func.GetObjname())}, true
	case *pg.Node_DefineStmt:
		return defined(s.DefineStmt)
	case *pg.Node_DropStmt:
		return dropped(s.DropStmt)
	case *pg.Node_CreateRoleStmt:
		return nil, !slices.ContainsFunc(s.CreateRoleStmt.Options, func(o *pg.Node) bool { return memberships[o.GetDefElem().GetDefname()] })
	default:
		return nil, beside(n)
	}
	if what == nil {
		return nil, false
	}
	pgsyntax.Walk(what, func(m proto.Message) bool {
		if rv, ok := m.(*pg.RangeVar); ok {
			names = append(names, rv.Relname)
		}
		return true
	})
	return names, len(names) > 0
}

// elsewhere reports whether a part of an ALTER TABLE changes what depends on the table. What a Catalog knows of a view tells whether its tables have row security.
func elsewhere(n *pg.Node) bool {
	switch c := n.GetAlterTableCmd(); c.GetSubtype() {
	case pg.AlterTableType_AT_EnableRowSecurity, pg.AlterTableType_AT_DisableRowSecurity:
		return true
	default:
		return c.GetBehavior() == pg.DropBehavior_DROP_CASCADE
	}
}

// memberships are the options of CREATE ROLE by which a role gets rights of another.
var memberships = map[string]bool{"addroleto": true, "rolemembers": true, "adminmembers": true}

// defined is confined for CREATE AGGREGATE, OPERATOR, TYPE, TEXT SEARCH and COLLATION.
func defined(s *pg.DefineStmt) (names []string, known bool) {
	switch s.Kind {
	case pg.ObjectType_OBJECT_AGGREGATE:
		return []string{pgsyntax.LastName(s.Defnames)}, true
	case pg.ObjectType_OBJECT_TYPE, pg.ObjectType_OBJECT_COLLATION, pg.ObjectType_OBJECT_TSPARSER, pg.ObjectType_OBJECT_TSDICTIONARY, pg.ObjectType_OBJECT_TSTEMPLATE,
		pg.ObjectType_OBJECT_TSCONFIGURATION:
		return nil, true
	}
	return nil, false
}

// dropped is confined for DROP, which nothing survives that depends on what is dropped, unless it has CASCADE.
func dropped(s *pg.DropStmt) (names []string, known bool) {
	if s.Behavior != pg.DropBehavior_DROP_RESTRICT {
		return nil, false
	}
	for _, o := range s.Objects {
		list := o.GetList().GetItems()
		switch s.RemoveType {
		case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW, pg.ObjectType_OBJECT_FOREIGN_TABLE, pg.ObjectType_OBJECT_SEQUENCE:
		case pg.ObjectType_OBJECT_TRIGGER, pg.ObjectType_OBJECT_RULE, pg.ObjectType_OBJECT_POLICY: // the table, and its own name
			list = list[:len(list)-1]
		case pg.ObjectType_OBJECT_FUNCTION, pg.ObjectType_OBJECT_PROCEDURE, pg.ObjectType_OBJECT_ROUTINE, pg.ObjectType_OBJECT_AGGREGATE:
			list = o.GetObjectWithArgs().GetObjname()
		case pg.ObjectType_OBJECT_TYPE, pg.ObjectType_OBJECT_DOMAIN, pg.ObjectType_OBJECT_COLLATION, pg.ObjectType_OBJECT_CONVERSION, pg.ObjectType_OBJECT_STATISTIC_EXT,
			pg.ObjectType_OBJECT_PUBLICATION, pg.ObjectType_OBJECT_FDW, pg.ObjectType_OBJECT_FOREIGN_SERVER, pg.ObjectType_OBJECT_OPCLASS, pg.ObjectType_OBJECT_OPFAMILY,
			pg.ObjectType_OBJECT_TSPARSER, pg.ObjectType_OBJECT_TSDICTIONARY, pg.ObjectType_OBJECT_TSTEMPLATE, pg.ObjectType_OBJECT_TSCONFIGURATION:
			continue
		default:
			return nil, false
		}
		names = append(names, pgsyntax.LastName(list))
	}
	return names, true
}

// beside reports whether a definition changes nothing of what a Catalog has.
func beside(n *pg.Node) bool {
	switch n.Node.(type) {
	case *pg.Node_CreateEnumStmt, *pg.Node_AlterEnumStmt, *pg.Node_CreateRangeStmt, *pg.Node_CompositeTypeStmt, *pg.Node_CreateDomainStmt, *pg.Node_AlterDomainStmt,
		*pg.Node_CreateStatsStmt, *pg.Node_AlterStatsStmt, *pg.Node_CreatePublicationStmt, *pg.Node_AlterPublicationStmt, *pg.Node_CreateSubscriptionStmt,
		*pg.Node_AlterSubscriptionStmt, *pg.Node_DropSubscriptionStmt, *pg.Node_CreateFdwStmt, *pg.Node_AlterFdwStmt, *pg.Node_CreateForeignServerStmt,
		*pg.Node_AlterForeignServerStmt, *pg.Node_CreateUserMappingStmt, *pg.Node_AlterUserMappingStmt, *pg.Node_DropUserMappingStmt, *pg.Node_DropRoleStmt,
		*pg.Node_CreateOpClassStmt, *pg.Node_CreateOpFamilyStmt, *pg.Node_AlterOpFamilyStmt, *pg.Node_AlterOperatorStmt, *pg.Node_CreateConversionStmt,
		*pg.Node_AlterTsdictionaryStmt, *pg.Node_AlterTsconfigurationStmt, *pg.Node_CreateTableSpaceStmt, *pg.Node_DropTableSpaceStmt, *pg.Node_CreatedbStmt,
		*pg.Node_DropdbStmt, *pg.Node_AlterDatabaseSetStmt, *pg.Node_AlterRoleSetStmt, *pg.Node_AlterDefaultPrivilegesStmt:
		return true
	}
	return false
}
