#!/bin/bash
# Uses the coupon once a second, the wrong way: what was read may be old when the new value is written.
set -euo pipefail
while sleep 1; do
	echo "BEGIN;
SELECT uses + 1 AS next FROM coupon WHERE code = 'SPRING' \gset
SELECT pg_sleep(random() / 2) \g /dev/null
UPDATE coupon SET uses = :next WHERE code = 'SPRING';
COMMIT;"
done | psql --quiet --set ON_ERROR_STOP=1
