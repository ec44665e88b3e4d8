package product

// Participation follows an InnoDB transaction through its savepoints. A storage engine that was no part of the transaction at a savepoint is
// rolled back as a whole when the transaction goes back to it (MariaDB and MySQL, sql/handler.cc, ha_rollback_to_savepoint): it gives up its
// locks and its snapshot, and the next statement makes it begin again. So the level promises nothing across such a ROLLBACK TO.
//
// Statements are numbered in their order within the transaction. The zero value is a transaction that has begun. For products without
// Traits.SavepointRestarts nothing calls it.
type Participation struct {
	part  bool
	first int // the statement with which the present part began
}

// Use notes a statement that uses tables, or that takes a snapshot (START TRANSACTION WITH CONSISTENT SNAPSHOT).
func (p *Participation) Use(n int) {
	if !p.part {
		p.part, p.first = true, n
	}
}

// RollbackTo notes that the transaction goes back to a savepoint that stands in front of statement n. restarts reports that the engine
// begins its part again.
func (p *Participation) RollbackTo(n int) (restarts bool) {
	restarts = p.part && p.first >= n
	p.part = p.part && !restarts
	return restarts
}
