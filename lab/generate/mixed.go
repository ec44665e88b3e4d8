package generate

import "fmt"

// Expressions over values of different types. What a server makes of them should depend on the types alone; optimizers that fold
// constants, drop casts or reason with NOT NULL and ranges get them wrong (Radar, VLDB'24, listings 1, 3 and 4: IFNULL(c, '0') of a
// NOT NULL column, an unsigned column > -'7', CAST of a generated column). They stand in queries alone: a write would be refused where a
// query warns.

// mixing reports whether the query that is being made may mix types.
func (r *expressions) mixing() bool { return r.kind == KindSelect && r.has("mixed-types") }

// mixture is how often types are mixed, as a weight among conditions and in thousandths of what is selected.
func (r *expressions) mixture() (weight, thousandths int) {
	if r.asking {
		return 50, often
	}
	return 9, rarely
}

// mixedCondition is a condition over such an expression.
func (r *expressions) mixedCondition(c ref) string {
	x := c.sql
	if r.mark("mixed-types"); r.intn(3) > 0 {
		x = r.mixed(c, 2)
	}
	switch r.intn(6) {
	case 0:
		return x // any value has a truth
	case 1:
		return fmt.Sprintf("%s IN (%s, %s)", x, r.stray(), r.stray())
	case 2:
		return fmt.Sprintf("%s BETWEEN %s AND %s", x, r.stray(), r.stray())
	}
	return fmt.Sprintf("%s %s %s", x, oneOf(r.intn, []string{"=", "<>", "<", ">", "<=", ">=", "<=>"}), r.stray())
}

// mixed makes an expression of a column, of whatever type.
func (r *expressions) mixed(c ref, depth int) string {
	r.mark("mixed-types")
	if depth == 0 {
		return c.sql
	}
	inner := func() string {
		if r.intn(2) == 0 {
			return r.mixed(c, depth-1)
		}
		return c.sql
	}
	one := func(forms ...string) func() string {
		return func() string { return fmt.Sprintf(oneOf(r.intn, forms), inner()) }
	}
	two := func(forms ...string) func() string {
		return func() string {
			a, b := inner(), r.stray()
			if r.intn(4) == 0 {
				a, b = b, a
			}
			return fmt.Sprintf(oneOf(r.intn, forms), a, b)
		}
	}
	return r.choose([]option{
		{24, "", true, two("IFNULL(%s, %s)", "IFNULL(%s, %s)", "COALESCE(%s, %s)", "NULLIF(%s, %s)", "LEAST(%s, %s)", "GREATEST(%s, %s)")},
		{4, "", true, func() string { return fmt.Sprintf("IF(%s, %s, %s)", inner(), r.stray(), inner()) }},
		{3, "", true, func() string {
			return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", inner(), inner(), r.stray())
		}},
		{12, "cast-types", true, one("CAST(%s AS SIGNED)", "CAST(%s AS UNSIGNED)", "CAST(%s AS CHAR)", "CAST(%s AS CHAR(2))", "CAST(%s AS BINARY)", "CAST(%s AS DECIMAL)",
			"CAST(%s AS DECIMAL(10,2))", "CAST(%s AS DATE)", "CAST(%s AS DATETIME)", "CAST(%s AS TIME)")},
		{5, "bit-operator", c.Class != JSON, two("(%s & %s)", "(%s | %s)", "(%s ^ %s)")},
		{2, "bit-operator", c.Class != JSON, one("(~ %s)")},
		{5, "unary-minus", c.Class != JSON, one("(- %s)")},
		{6, "", c.Class != JSON, two("(%s + %s)", "(%s - %s)", "(%s * %s)", "(%s DIV %s)")},
		{6, "", true, two("(%s = %s)", "(%s < %s)", "(%s > %s)", "(%s <=> %s)", "(%s <> %s)")},
		{4, "", true, one("(%s IS NULL)", "(NOT %s)", "(%s IS TRUE)", "(%s IS NOT FALSE)")},
		{3, "", true, func() string { return fmt.Sprintf("(%s IN (%s, %s))", inner(), r.stray(), r.stray()) }},
		{8, "", true, one("HEX(%s)", "LENGTH(%s)", "CONCAT(%s, '')", "ABS(%s)", "SIGN(%s)", "BIT_COUNT(%s)", "LOWER(%s)", "TRIM(%s)", "YEAR(%s)", "FLOOR(%s)", "ROUND(%s)")},
		{2, "", true, two("CONCAT(%s, %s)", "STRCMP(%s, %s)", "FIELD(%s, %s)")},
	})
}

// stray is a constant of any type.
func (r *expressions) stray() string {
	text := oneOf(r.intn, []string{
		"'0'", "'1'", "'-1'", "'7'", "'1.5'", "'a'", "''", "'2024-01-02'", "'12:30:00'", "0", "1", "2", "-1", "7", "0.5", "-1.5", "1e0", "1.0", "127", "255", "256", "2024",
		"9223372036854775807", "18446744073709551615", "NULL", "TRUE", "X'31'", "DATE '2024-01-02'",
	})
	if r.has("unary-minus") && text != "NULL" && r.chance(fairly) {
		r.mark("unary-minus")
		return "(- " + text + ")"
	}
	return text
}
