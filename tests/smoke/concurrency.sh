#!/usr/bin/env bash
# Twenty equal requests at once are one execution, and all get its answer.
#
# BASE_URL=http://host:port API_KEY=… tests/smoke/concurrency.sh   (all settings: lib.sh)

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

key=$(fresh_key)
count_from_here

# Slow on the demo, so that all of them meet; others ignore the header.
for number in {1..20}; do
    send "$number" -H "Idempotency-Key: $key" -H "X-Demo: slow" -d "$BODY" &
done
wait

executed=0
for number in {1..20}; do
    [[ -s $WORK/$number.head ]] || fail "request $number got no answer"
    [[ $(status "$number") == 2?? ]] || fail "request $number: $(show "$number")"
    cmp -s "$WORK/$number.body" "$WORK/1.body" || fail "request $number has another answer"
    [[ $(header "$number" Idempotent-Replayed) == true ]] || executed=$((executed + 1))
done
ok "twenty answers are the same"
expect "one of them says that it was executed" 1 "$executed"
expect_executions 1 "there was one execution"
