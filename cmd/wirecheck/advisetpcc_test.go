package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var tpccPrograms = flag.Int("tpcc-programs", 0, "how many of TPC-C's five programs to execute; 0: of NewOrder alone what takes the next number")

// tpccSchema is TPC-C's, as far as its programs need it, with one warehouse and one district.
const tpccSchema = `CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_tax INT, w_ytd INT);
CREATE TABLE district (d_w_id INT, d_id INT, d_tax INT, d_ytd INT, d_next_o_id INT, PRIMARY KEY (d_w_id, d_id));
CREATE TABLE customer (c_w_id INT, c_d_id INT, c_id INT, c_discount INT, c_balance INT, c_delivery_cnt INT, PRIMARY KEY (c_w_id, c_d_id, c_id));
CREATE TABLE history (h_c_id INT, h_amount INT);
CREATE TABLE orders (o_w_id INT, o_d_id INT, o_id INT, o_c_id INT, o_carrier_id INT, PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE TABLE new_order (no_w_id INT, no_d_id INT, no_o_id INT, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE order_line (ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT, ol_i_id INT, ol_amount INT, ol_delivered BOOLEAN, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
CREATE TABLE stock (s_w_id INT, s_i_id INT, s_quantity INT, PRIMARY KEY (s_w_id, s_i_id));
INSERT INTO warehouse VALUES (1, 7, 0);
INSERT INTO district VALUES (1, 1, 5, 0, 3003);
INSERT INTO customer VALUES (1, 1, 11, 3, 1000, 0), (1, 1, 12, 4, 1000, 0);
INSERT INTO orders VALUES (1, 1, 3001, 11, NULL), (1, 1, 3002, 12, NULL);
INSERT INTO new_order VALUES (1, 1, 3001), (1, 1, 3002);
INSERT INTO order_line VALUES (1, 1, 3001, 1, 501, 40, false), (1, 1, 3002, 1, 502, 60, false);
INSERT INTO stock VALUES (1, 501, 80), (1, 502, 90);
`

// tpcc are the programs of TPC-C (specification 5.11, section 2) for a customer; next is the number of the next order, oldest that of the oldest one that is
// not delivered, whose customer and amount follow.
func tpcc(customer, next, oldest, owner, amount, quantity int) [][]string {
	const here, at = "_w_id = 1 AND %[1]s_d_id = 1", "(1, 1, %d"
	in := func(table string) string { return table + fmt.Sprintf(here, table) }
	district, take, put := "SELECT d_next_o_id, d_tax FROM district WHERE "+in("d"), fmt.Sprintf("UPDATE district SET d_next_o_id = %d WHERE ", next+1)+in("d"),
		fmt.Sprintf("INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id) VALUES "+at+", %d)", next, customer)
	programs := [][]string{
		transaction("NewOrder",
			"SELECT w_tax FROM warehouse WHERE w_id = 1",
			district, take,
			fmt.Sprintf("SELECT c_discount FROM customer WHERE %s AND c_id = %d", in("c"), customer),
			put,
			fmt.Sprintf("INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES "+at+")", next),
			"SELECT s_quantity FROM stock WHERE s_w_id = 1 AND s_i_id = 501",
			fmt.Sprintf("UPDATE stock SET s_quantity = %d WHERE s_w_id = 1 AND s_i_id = 501", quantity-3),
			fmt.Sprintf("INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_amount, ol_delivered) VALUES "+at+", 1, 501, 30, false)", next)),
		transaction("Payment",
			"UPDATE warehouse SET w_ytd = w_ytd + 25 WHERE w_id = 1",
			"UPDATE district SET d_ytd = d_ytd + 25 WHERE d_w_id = 1 AND d_id = 1",
			fmt.Sprintf("UPDATE customer SET c_balance = c_balance - 25 WHERE %s AND c_id = %d", in("c"), customer),
			fmt.Sprintf("INSERT INTO history (h_c_id, h_amount) VALUES (%d, 25)", customer)),
		transaction("Delivery",
			"SELECT min(no_o_id) FROM new_order WHERE "+in("no"),
			fmt.Sprintf("DELETE FROM new_order WHERE %s AND no_o_id = %d", in("no"), oldest),
			fmt.Sprintf("SELECT o_c_id FROM orders WHERE %s AND o_id = %d", in("o"), oldest),
			fmt.Sprintf("UPDATE orders SET o_carrier_id = 7 WHERE %s AND o_id = %d", in("o"), oldest),
			fmt.Sprintf("UPDATE order_line SET ol_delivered = true WHERE %s AND ol_o_id = %d", in("ol"), oldest),
			fmt.Sprintf("SELECT sum(ol_amount) FROM order_line WHERE %s AND ol_o_id = %d", in("ol"), oldest),
			fmt.Sprintf("UPDATE customer SET c_balance = c_balance + %d, c_delivery_cnt = c_delivery_cnt + 1 WHERE %s AND c_id = %d", amount, in("c"), owner)),
		transaction("OrderStatus",
			fmt.Sprintf("SELECT c_balance FROM customer WHERE %s AND c_id = %d", in("c"), customer),
			fmt.Sprintf("SELECT max(o_id) FROM orders WHERE %s AND o_c_id = %d", in("o"), customer),
			fmt.Sprintf("SELECT ol_i_id, ol_delivered FROM order_line WHERE %s AND ol_o_id = %d", in("ol"), next)),
		transaction("StockLevel",
			"SELECT d_next_o_id FROM district WHERE d_w_id = 1 AND d_id = 1",
			fmt.Sprintf("SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE %s AND ol_o_id >= %d AND s_quantity < 85", in("ol"), next-20)),
	}
	if *tpccPrograms == 0 {
		programs = [][]string{transaction("NewOrder", district, take, put)}
	}
	for _, p := range programs {
		for i := range p {
			p[i] = strings.ReplaceAll(p[i], "d_d_id", "d_id")
		}
		p[0] = strings.Replace(p[0], "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", 1)
	}
	return programs[:max(*tpccPrograms, 1)]
}

// TestAdviseTPCC: TPC-C is robust against snapshot isolation (Fekete, Liarokapis, O'Neil, O'Neil and Shasha, TODS 2005, section 5), and not against read
// committed. That NewOrder reads no column of the customer that Delivery writes matters: were it the balance, NewOrder, Delivery and OrderStatus would go
// wrong at once.
func TestAdviseTPCC(t *testing.T) {
	t.Parallel()
	a := advised(t, "postgres", exitClean, tpccSchema, serially(slices.Concat(tpcc(11, 3003, 3001, 11, 40, 80), tpcc(12, 3004, 3002, 12, 60, 77))...), "--budget", "1h")
	weaker := 0
	for _, p := range slices.Concat(a.Pairs, a.Triples) {
		var names []string
		for _, n := range []int{p.A, p.B, p.C} {
			if n > 0 {
				names = append(names, a.Shapes[n-1].Name)
			}
		}
		for _, o := range p.Levels {
			switch {
			case o.Level == "read committed":
				weaker += o.Wrong + o.Possible
			case o.Wrong+o.Possible > 0:
				t.Errorf("%s at %s: wrong in %d, possible in %d of %d: %+v %+v", names, o.Level, o.Wrong, o.Possible, o.Tried, o.Shown, o.Maybe)
			case o.Level == "repeatable read" && o.Tried == 0 && p.C == 0:
				t.Errorf("%s at %s was not executed: %s", names, o.Level, o.Untried)
			}
		}
	}
	if weaker == 0 {
		t.Error("nothing goes wrong at read committed")
	}
	if want := max(*tpccPrograms, 1); len(a.Shapes) != want {
		t.Errorf("%d shapes, want %d", len(a.Shapes), want)
	}
}
