#!/usr/bin/env bash
# A client that gives up cancels nothing: its retry gets the answer.
#
# BASE_URL=http://host:port API_KEY=… tests/smoke/hangup.sh   (all settings: lib.sh)

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

key=$(fresh_key)
count_from_here

# The demo takes three seconds. Elsewhere HANG_UP_AFTER has to be less than the upstream takes.
if curl -s --max-time "${HANG_UP_AFTER:-1}" -o "$WORK/early.body" -X POST "$URL" \
    -H "$SCOPE_HEADER: $API_KEY" -H 'Content-Type: application/json' \
    -H "Idempotency-Key: $key" -H "X-Demo: slow" -d "$BODY"; then
    ! is_demo || fail "the client was answered before it gave up"
    printf 'note  the upstream was faster than the client: set HANG_UP_AFTER lower\n'
else
    ok "the client gave up while the upstream worked"
fi

send retry -H "Idempotency-Key: $key" -d "$BODY"
expect_success retry
expect "retry: is told that it was not executed anew" true "$(header retry Idempotent-Replayed)"

send again -H "Idempotency-Key: $key" -d "$BODY"
expect_replay again retry

expect_executions 1 "three requests were one execution"
