#!/usr/bin/env bash
# What an upstream answers decides what a retry gets. Demo only.
#
# BASE_URL=http://host:port API_KEY=… tests/smoke/answers.sh   (all settings: lib.sh)

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_demo

key=$(fresh_key)
count_from_here
send failed -H "Idempotency-Key: $key" -H "X-Demo: fail" -d "$BODY"
expect "failed: the API's own 500" 500 "$(status failed)"
expect "failed: SDKs are told that it stays so" false "$(header failed Stripe-Should-Retry)"
send "failed again" -H "Idempotency-Key: $key" -d "$BODY"
expect_replay "failed again" failed
expect_executions 1 "a 500 is final: one execution"

key=$(fresh_key)
count_from_here
send busy -H "Idempotency-Key: $key" -H "X-Demo: busy" -d "$BODY"
expect "busy: the API did nothing, and says so" 503 "$(status busy)"
expect "busy: the API's Retry-After" 1 "$(header busy Retry-After)"
send "after busy" -H "Idempotency-Key: $key" -d "$BODY"
expect_success "after busy"
expect "after busy: is executed, not replayed" "" "$(header "after busy" Idempotent-Replayed)"
expect_executions 1 "the key was freed: one execution"
