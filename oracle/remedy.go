package oracle

// Remedies lists what an application can do against a finding, cheapest first. What a product promises and did not hold
// is its vendor's to mend, so there the first advice is to report it.
func Remedies(product string, f *Finding) []string {
	var out []string
	if f.Promised {
		out = append(out, "report it to the vendor of "+ProductName(product)+": the level promises to prevent this")
	}
	add := func(s ...string) { out = append(out, s...) }
	switch f.Name {
	case NameLostUpdate:
		add("let one UPDATE compute the new value from the row (SET n = n + 1) in place of reading it first",
			"lock the row with the read (SELECT ... FOR UPDATE)",
			"keep a version column and check it in the WHERE of the UPDATE, and retry if no row was changed")
	case NameWriteSkew:
		add("lock what the decision rests on with the read (SELECT ... FOR UPDATE, or FOR SHARE)",
			"let a constraint (unique, check, exclusion) guard the rule, or write a common row that both update")
	case NameReadSkew, NameNonRepeatableRead, NameVanishes, NameReadWriteSkew, NameLongFork:
		add("read what belongs together in one statement",
			"lock the rows with the first read (SELECT ... FOR SHARE)")
	case NameAbortedRead, NameIntermediateRead, NameCircularFlow, NameDirtyWrite:
		// Only the level helps.
	default:
		add("lock what the decision rests on with the read (SELECT ... FOR UPDATE, or FOR SHARE)")
	}
	if f.PreventedBy != "" && !f.Promised {
		level := LevelName(product, f.PreventedBy)
		if ph, _ := PhenomenonOf(f.Class, f.Name); ph == PG0 || ph == PG1a || ph == PG1b || ph == PG1c || ph == POTV {
			add("run at " + level + " or higher")
		} else {
			add("run all transactions that take part at " + level + " and retry those that are refused (" + refusal(product) + ")")
		}
	}
	return out
}

// refusal names the errors with which a product refuses a transaction that would not fit.
func refusal(product string) string {
	switch product {
	case "mysql", "tidb":
		return "error 1213"
	case "mariadb":
		return "errors 1213 and 1020"
	case "sqlite":
		return "SQLITE_BUSY"
	}
	return "SQLSTATE 40001"
}
