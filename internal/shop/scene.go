// Package shop is a small shop and bank workload that shows the classic application bugs: it is what `wirecheck demo`
// runs and what the end-to-end tests judge. Its clients are ordinary ones: pgx, go-sql-driver/mysql, psql, mariadb.
package shop

// Scene is one bug, told as the statements of a few clients in the order in which they are sent.
type Scene struct {
	Name   string // the anomaly's everyday name, as wirecheck reports it
	Title  string // what happens, for people
	Level  string // SQL name of the level at which every transaction of the scene runs
	Who    map[string]Part
	Steps  []Step
	Effect string // what the bug did, for people
}

// Part says with which client a person of the scene connects.
type Part string

// The clients.
const (
	Driver   Part = "driver"   // pgx or go-sql-driver/mysql, over TCP
	Terminal Part = "terminal" // psql or mariadb
)

// Step is one statement.
type Step struct {
	Who string
	SQL string
}

// Setup makes the tables and fills them.
var Setup = []string{
	`CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(20) NOT NULL, balance INT NOT NULL)`,
	`CREATE TABLE coupon (code VARCHAR(20) PRIMARY KEY, uses_left INT NOT NULL)`,
	`INSERT INTO account VALUES (1, 'alice', 100), (2, 'alice', 100), (3, 'bob', 500), (4, 'carol', 500),
	 (11, 'crowd', 1000), (12, 'crowd', 1000), (13, 'crowd', 1000), (14, 'crowd', 1000)`,
	`INSERT INTO coupon VALUES ('WELCOME10', 1), ('SPRING', 100)`,
}

// Scenes are the three bugs, at levels at which the product (postgres or mariadb) lets them through.
func Scenes(engine string) []Scene {
	repeatable, lost := "REPEATABLE READ", "READ COMMITTED"
	if engine != "postgres" {
		lost = repeatable // InnoDB's REPEATABLE READ does not prevent lost updates
	}
	return []Scene{
		{
			Name:  "write skew",
			Title: "Alice's two accounts may be overdrawn as long as their sum is not: two withdrawals check at once",
			Level: repeatable,
			Who:   map[string]Part{"till A": Driver, "till B": Driver},
			Steps: []Step{
				{"till A", "BEGIN"},
				{"till A", "SELECT id, balance FROM account WHERE owner = 'alice'"},
				{"till B", "BEGIN"},
				{"till B", "SELECT id, balance FROM account WHERE owner = 'alice'"},
				{"till A", "UPDATE account SET balance = balance - 150 WHERE id = 1"},
				{"till B", "UPDATE account SET balance = balance - 150 WHERE id = 2"},
				{"till A", "COMMIT"},
				{"till B", "COMMIT"},
			},
			Effect: "both withdrawals were paid out: the accounts hold -50 and -50, although each till had made sure that 50 would be left",
		},
		{
			Name:  "lost update",
			Title: "two customers use a coupon that is good for one use",
			Level: lost,
			Who:   map[string]Part{"customer A": Driver, "customer B": Terminal},
			Steps: []Step{
				{"customer A", "BEGIN"},
				{"customer A", "SELECT uses_left FROM coupon WHERE code = 'WELCOME10'"},
				{"customer B", "BEGIN"},
				{"customer B", "SELECT uses_left FROM coupon WHERE code = 'WELCOME10'"},
				{"customer A", "UPDATE coupon SET uses_left = 0 WHERE code = 'WELCOME10'"},
				{"customer A", "COMMIT"},
				{"customer B", "UPDATE coupon SET uses_left = 0 WHERE code = 'WELCOME10'"},
				{"customer B", "COMMIT"},
			},
			Effect: "one coupon, two discounts: the second update wrote over the first without having seen it",
		},
		{
			Name:  "read skew",
			Title: "a report adds up the balances while money moves from Bob to Carol",
			Level: "READ COMMITTED",
			Who:   map[string]Part{"report": Driver, "transfer": Driver},
			Steps: []Step{
				{"report", "BEGIN"},
				{"report", "SELECT balance FROM account WHERE id = 3"},
				{"transfer", "BEGIN"},
				{"transfer", "UPDATE account SET balance = balance - 100 WHERE id = 3"},
				{"transfer", "UPDATE account SET balance = balance + 100 WHERE id = 4"},
				{"transfer", "COMMIT"},
				{"report", "SELECT balance FROM account WHERE id = 4"},
				{"report", "COMMIT"},
			},
			Effect: "the report added up 500 + 600 = 1100; there were never more than 1000",
		},
	}
}
