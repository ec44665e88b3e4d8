#!/bin/bash
# Uses the coupon once a second, the wrong way: what was read may be old when the new value is written.
set -euo pipefail
coproc client {
	exec mariadb --host=wirecheck --port=6033 --user=root --skip-ssl --show-warnings --unbuffered --skip-column-names --force shop 2>&1
}
say() { echo "$1" >&"${client[1]}"; }
while sleep 1; do
	say "BEGIN; SELECT uses FROM coupon WHERE code = 'SPRING';"
	while read -r uses <&"${client[0]}" && ! [[ $uses =~ ^[0-9]+$ ]]; do
		echo "$uses" # a warning about the transaction before
	done
	sleep "0.$((RANDOM % 5))"
	say "UPDATE coupon SET uses = $((uses + 1)) WHERE code = 'SPRING'; COMMIT;"
done
