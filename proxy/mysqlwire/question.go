package mysqlwire

import "wirecheck/proxy/record"

// answered gives a SELECT for a text that asks wirecheck something, and every other text as it is. The server executes the SELECT in its place. A
// database of the server's that is named wirecheck, as far as the client's user knows of it, keeps its functions and procedures.
func answered(o *observation, sql string) (string, error) {
	q, schema, ok := record.AskedOf(sql)
	if !ok || !o.tracker.observed() {
		return sql, nil
	}
	if schema {
		rows, refused, err := o.ownRows("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'wirecheck'")
		if err != nil || refused != nil || len(rows) > 0 {
			return sql, err
		}
	}
	o.tracker.do(func(t *record.Tracker) {
		if table := t.Ask(q); table != nil {
			sql = table.MySQL(o.traits.Name != "tidb")
		}
	})
	return sql, nil
}
