#!/usr/bin/env bash
# A key that comes back with another request is refused, and the first answer stands.
#
# BASE_URL=http://host:port API_KEY=… tests/smoke/conflict.sh   (all settings: lib.sh)

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

key=$(fresh_key)
count_from_here

send first -H "Idempotency-Key: $key" -d "$BODY"
expect_success first

send "other body" -H "Idempotency-Key: $key" -d "$OTHER_BODY"
expect_problem "other body" 422 key-reused false

URL="$URL?other=query" send "other query" -H "Idempotency-Key: $key" -d "$BODY"
expect_problem "other query" 422 key-reused false

send again -H "Idempotency-Key: $key" -d "$BODY"
expect_replay again first

expect_executions 1 "four requests were one execution"
