#!/usr/bin/env bash
# A request without a usable key or caller is refused before anything happens.
#
# BASE_URL=http://host:port API_KEY=… tests/smoke/keys.sh   (all settings: lib.sh)

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

count_from_here

send "no key" -d "$BODY"
expect_problem "no key" 400 key-missing true

refused() {
    send "$1" -H "$2" -d "$BODY"
    expect_problem "$1" 400 key-invalid true
}

refused "empty key" "Idempotency-Key;"
refused "empty string" 'Idempotency-Key: ""'
refused "list" "Idempotency-Key: a, b"
refused "parameters" 'Idempotency-Key: "a";b=1'
refused "space" "Idempotency-Key: a b"
refused "unfinished string" 'Idempotency-Key: "a'
refused "not ASCII" "Idempotency-Key: clé"
refused "256 characters" "Idempotency-Key: $(printf 'k%.0s' {1..256})"

send "two lines" -H "Idempotency-Key: a" -H "Idempotency-Key: a" -d "$BODY"
expect_problem "two lines" 400 key-invalid true

send_anonymous "no caller" -H "Idempotency-Key: $(fresh_key)" -d "$BODY"
expect_problem "no caller" 400 scope-missing true

expect_executions 0 "nothing was executed"
