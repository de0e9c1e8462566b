# shellcheck shell=bash
# What the scripts beside this file share. Sourced, never run.
#
#   BASE_URL      the gateway                        http://127.0.0.1:8080
#   CHARGES_PATH  a path whose POST is keyed         /v1/charges
#   SCOPE_HEADER  the header that names the caller   X-Api-Key
#   API_KEY       its value                          smoke
#   BODY          what is sent                       {"amount": 1999, "currency": "eur"}
#   OTHER_BODY    a different operation              {"amount": 1, "currency": "eur"}
#
# Against `oncegate demo` the executions of its API are counted as well: they are the truth,
# status codes are what is told about it. On another gateway each key is a real operation.

set -euo pipefail

BASE_URL=${BASE_URL:-http://127.0.0.1:8080}
CHARGES_PATH=${CHARGES_PATH:-/v1/charges}
SCOPE_HEADER=${SCOPE_HEADER:-X-Api-Key}
API_KEY=${API_KEY:-smoke}
[[ -n ${BODY:-} ]] || BODY='{"amount": 1999, "currency": "eur"}'
[[ -n ${OTHER_BODY:-} ]] || OTHER_BODY='{"amount": 1, "currency": "eur"}'
URL=${BASE_URL%/}$CHARGES_PATH

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

fail() {
    printf 'FAIL  %s\n' "$*" >&2
    exit 1
}

ok() { printf 'ok    %s\n' "$*"; }

command -v curl >/dev/null || fail "curl is not installed"

# Each run has keys of its own, so that it can be repeated.
fresh_key() { printf 'smoke-%s-%s-%s\n' "$(date +%s)" "$$" "$RANDOM$RANDOM"; }

# send NAME [curl arguments]: POSTs as the caller and keeps the answer as NAME.
send() {
    local name=$1
    shift
    send_anonymous "$name" -H "$SCOPE_HEADER: $API_KEY" "$@"
}

# send_anonymous NAME [curl arguments]: the same without saying who calls.
send_anonymous() {
    local name=$1
    shift
    curl -sS --max-time 30 -X POST "$URL" -H 'Content-Type: application/json' \
        -D "$WORK/$name.head" -o "$WORK/$name.body" "$@" ||
        fail "no answer from $URL (curl said $?)"
}

status() { awk 'NR == 1 { print $2 }' "$WORK/$1.head"; }

# header NAME FIELD: the field's value, empty if it is not there.
header() {
    tr -d '\r' <"$WORK/$1.head" |
        awk -v field="$2" -F': ' 'tolower($1) == tolower(field) { print $2; exit }'
}

body() { cat "$WORK/$1.body"; }

show() { printf '%s %s' "$(status "$1")" "$(body "$1")"; }

# expect WHAT WANTED FOUND
expect() {
    [[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"
    ok "$1"
}

# expect_success NAME: the upstream's own answer, and one that is stored.
expect_success() {
    [[ $(status "$1") == 2?? ]] || fail "$1: expected success, got $(show "$1")"
    [[ -n $(header "$1" Idempotency-Expires) ]] || fail "$1: the answer is not marked as stored"
    ok "$1: $(status "$1"), stored until $(header "$1" Idempotency-Expires)"
}

# expect_replay NAME FIRST: the same answer as FIRST, marked as a replay.
expect_replay() {
    [[ $(header "$1" Idempotent-Replayed) == true ]] || fail "$1: no replay but $(show "$1")"
    [[ $(status "$1") == "$(status "$2")" ]] || fail "$1: the status differs: $(show "$1")"
    cmp -s "$WORK/$1.body" "$WORK/$2.body" || fail "$1: the body differs: $(show "$1")"
    ok "$1: the same answer, replayed"
}

# expect_problem NAME STATUS CODE NEW_KEY_SAFE: an error of the gateway itself.
expect_problem() {
    [[ $(status "$1") == "$2" ]] || fail "$1: expected $2 $3, got $(show "$1")"
    [[ $(body "$1") == *"\"code\":\"$3\""* ]] || fail "$1: expected $3, got $(show "$1")"
    [[ $(body "$1") == *"\"new_key_safe\":$4"* ]] || fail "$1: new_key_safe is not $4: $(body "$1")"
    [[ $(header "$1" Content-Type) == application/problem+json ]] || fail "$1: not problem+json"
    [[ $(header "$1" Idempotency-Error-Source) == gateway ]] || fail "$1: no error source"
    ok "$1: $2 $3"
}

# How often the demo's API has charged; empty on any other gateway.
executions() {
    local count
    count=$(curl -sf --max-time 5 "${BASE_URL%/}/executions" || true)
    if [[ $count =~ ^[0-9]+$ ]]; then printf '%s\n' "$count"; fi
}

is_demo() { [[ -n $(executions) ]]; }

need_demo() { is_demo || fail "this script needs the API of 'oncegate demo' behind $BASE_URL"; }

# count_from_here, then expect_executions WANTED WHAT: checked on the demo only.
count_from_here() { COUNTED=$(executions); }

expect_executions() {
    if [[ -n $COUNTED ]]; then expect "$2" "$1" "$(($(executions) - COUNTED))"; fi
}
