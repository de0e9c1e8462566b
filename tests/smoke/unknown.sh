#!/usr/bin/env bash
# When the answer is lost nobody guesses: the key is unknown, and is not run again. Demo only.
#
# BASE_URL=http://host:port API_KEY=… tests/smoke/unknown.sh   (all settings: lib.sh)

# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_demo
key=$(fresh_key)
count_from_here

send cut -H "Idempotency-Key: $key" -H "X-Demo: cut" -d "$BODY"
expect_problem cut 502 upstream-interrupted false

send retry -H "Idempotency-Key: $key" -d "$BODY"
expect_problem retry 409 outcome-unknown false
expect "retry: SDKs are told to stop" false "$(header retry Stripe-Should-Retry)"

expect_executions 1 "the API charged once"
