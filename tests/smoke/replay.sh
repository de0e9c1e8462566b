#!/usr/bin/env bash
# A retry gets the first answer again, and nothing is executed twice.
#
# BASE_URL=http://host:port API_KEY=… tests/smoke/replay.sh   (all settings: lib.sh)

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

key=$(fresh_key)
count_from_here

send first -H "Idempotency-Key: $key" -d "$BODY"
expect_success first
expect "first: is no replay" "" "$(header first Idempotent-Replayed)"

send second -H "Idempotency-Key: $key" -d "$BODY"
expect_replay second first
expect "second: expires when the first does" \
    "$(header first Idempotency-Expires)" "$(header second Idempotency-Expires)"

send quoted -H "Idempotency-Key: \"$key\"" -d "$BODY"
expect_replay quoted first

expect_executions 1 "three requests were one execution"

if is_demo; then
    send_anonymous stranger -H "$SCOPE_HEADER: $API_KEY-other" -H "Idempotency-Key: $key" -d "$BODY"
    expect_success stranger
    expect "stranger: another caller's key is another key" "" "$(header stranger Idempotent-Replayed)"
    expect_executions 2 "the other caller's request was executed"
fi
