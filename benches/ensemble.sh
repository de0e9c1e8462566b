#!/usr/bin/env bash
# Fresh keys per second through gateways on a real three-server ensemble, against a bare client
# that sends the same two transactions per key.
#
#   benches/ensemble.sh                 every case, as a table in Markdown
#   benches/ensemble.sh bare gateway    some cases
#
# bare, gateway, gateways    64 in flight: the bare client, one gateway, three gateways
# bare-read                  as `bare`, and it looks for the record first, as a gateway does
# bare-1, gateway-1          one in flight; the bare client looks for the record first
# direct-1                   the upstream alone, over one connection
#
# Each figure is the median of its rounds; a round goes through all cases. Every case begins with a
# second that does not count, and the first follows WARM of them: servers compile what they run often.
#
# ROUNDS=3 DURATION=5 IN_FLIGHT=64 WARM=20
# ONCEGATE=FILE BARE=FILE   the programs; without them the release builds are made
# ONCEGATE_ZK_TICK, ONCEGATE_ZK_CLASSPATH, ...   see tests/ensemble.sh
#
# Uses the ports 18080 to 18090 of 127.0.0.1, and 18160 to 18189 for the ensemble. Needs wrk, curl
# and nginx, and installs what is missing on Debian as root. A failed request, or an upstream that
# executed more or less often than there were keys, ends the run with an error.

set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${ROUNDS:-3} duration=${DURATION:-5} in_flight=${IN_FLIGHT:-64}
all=(direct-1 bare bare-read gateway gateways bare-1 gateway-1)
cases=("${@:-${all[@]}}")
upstream=18090
export ONCEGATE_ZK_PORT=18160 ONCEGATE_ZK_TICK=${ONCEGATE_ZK_TICK:-2000}
export ONCEGATE_ZK_TIER=${ONCEGATE_ZK_TIER:-4} ONCEGATE_ZK_HEAP=${ONCEGATE_ZK_HEAP:-512m}

fail() { echo "ensemble.sh: $*" >&2; exit 1; }

install_missing() {
    local missing=()
    command -v wrk >/dev/null || missing+=(wrk)
    command -v curl >/dev/null || missing+=(curl)
    command -v nginx >/dev/null || missing+=(nginx-light)
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || fail "please install ${missing[*]}"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# What was started and still runs, ended by its id.
upstream_pid='' gateways=() dir=''
stop() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
stop_gateways() {
    local pid
    for pid in "${gateways[@]}"; do stop "$pid"; done
    gateways=()
}
clean_up() {
    stop_gateways
    [ -z "$upstream_pid" ] || stop "$upstream_pid"
    [ -z "${ONCEGATE_ZK_DIR:-}" ] || tests/ensemble.sh destroy
    [ -z "$dir" ] || rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Waits until PID answers at PORT.
await() {
    for _ in $(seq 200); do
        kill -0 "$1" 2>/dev/null || break
        curl -so "$dir/answer" --max-time 1 "127.0.0.1:$2/" && return 0
        sleep 0.05
    done
    cat "$dir"/log* >&2
    fail "nothing answers at port $2"
}

filled() {
    sed -e "s|@ONCEGATE@|$1|; s|@ADMIN@|$(($1 + 1))|; s|@UPSTREAM@|$upstream|; s|@DIR@|$dir|" \
        -e "s|@LEDGER@|$ledger|" "benches/compare/$2" >"$dir/$1-$2"
    echo "$dir/$1-$2"
}

start_gateways() {
    local number port
    for ((number = 0; number < $1; number++)); do
        port=$((18080 + 2 * number))
        "$oncegate" serve --config "$(filled "$port" oncegate.yaml)" >"$dir/log-$number" 2>&1 &
        gateways+=($!)
        await $! "$port"
    done
}

executed() { curl -s "127.0.0.1:$upstream/requests" | awk 'NR == 3 { print $3 }'; }

# load PORT SECONDS CONNECTIONS MODE NONCE: prints the line of figures.
load() {
    wrk -t 1 -c "$3" -d "$2s" --timeout 10s -s benches/compare/load.lua \
        "http://127.0.0.1:$1/v1/charges" -- "$4" "$5" 0 | grep '^figures'
}

# Through NUMBER gateways at once, CONNECTIONS in all.
through() {
    local number=$1 connections=$2 which pids=() before ran requests errors
    start_gateways "$number"
    for ((which = 0; which < number; which++)); do
        load $((18080 + 2 * which)) 1 $((connections / number)) fresh "$nonce-warm-$which" >/dev/null
    done
    sleep 0.2
    before=$(executed)
    for ((which = 0; which < number; which++)); do
        load $((18080 + 2 * which)) "$duration" $((connections / number)) fresh \
            "$nonce-$which" >"$dir/figures-$which" &
        pids+=($!)
    done
    wait "${pids[@]}"
    sleep 0.2
    ran=$(($(executed) - before - 1))
    stop_gateways
    awk '{ n += $2; us = $3 > us ? $3 : us; bad += $4; p50 += $5; p99 = $6 > p99 ? $6 : p99 }
        END { print "figures", n, us, bad, p50 / NR, p99 }' "$dir"/figures-? >"$dir/figures"
    rm "$dir"/figures-?
    read -r _ requests _ errors _ <"$dir/figures"
    [ "$errors" = 0 ] || { cat "$dir"/log* >&2; fail "$errors requests failed"; }
    [ "$ran" -ge "$requests" ] && [ "$ran" -le $((requests + connections)) ] ||
        fail "the upstream executed $ran times for $requests keys"
}

run() {
    local case=$1 nonce=$run-$2-$1
    case $case in
        direct-1) load "$upstream" "$duration" 1 post "$nonce" >"$dir/figures" ;;
        bare*)
            local arguments=("$in_flight" "$duration")
            [ "$case" = bare ] || arguments+=(read)
            [ "$case" != bare-1 ] || arguments[0]=1
            "$bare" "$servers" "$in_flight" 1 >/dev/null
            "$bare" "$servers" "${arguments[@]}" >"$dir/figures" ;;
        gateway) through 1 "$in_flight" ;;
        gateways) through 3 "$in_flight" ;;
        gateway-1) through 1 1 ;;
        *) fail "no case $case; there are ${all[*]}" ;;
    esac
    awk -v OFS='\t' -v case="$case" '{ print case, $2 * 1e6 / $3, $5, $6 }' "$dir/figures" |
        tee -a "$dir/all" | awk '{ printf "  %s: %.0f/s, p50 %d µs\n", $1, $2, $3 }' >&2
}

install_missing
oncegate=${ONCEGATE:-} bare=${BARE:-}
if [ -z "$oncegate" ]; then
    cargo build --release --locked >&2
    oncegate=${CARGO_TARGET_DIR:-target}/release/oncegate
fi
if [ -z "$bare" ]; then
    bare=$(cargo bench --locked --no-run --bench bare --message-format json 2>/dev/null |
        sed -n 's/.*"executable":"\([^"]*\/bare-[^"]*\)".*/\1/p')
fi
[ -x "$oncegate" ] || fail "there is no program $oncegate"
[ -x "$bare" ] || fail "there is no program $bare"
dir=$(mktemp -d "${TMPDIR:-/tmp}/oncegate-ensemble.XXXXXX")
export ONCEGATE_ZK_DIR=$dir/servers
run=$(date +%s)-$$
tests/ensemble.sh start
servers=$(tests/ensemble.sh servers)
ledger="{ kind: zookeeper, zookeeper: { servers: [$servers] } }"
nginx -e stderr -c "$(filled 18080 upstream.conf)" 2>"$dir/log" &
upstream_pid=$!
await "$upstream_pid" "$upstream"
"$bare" "$servers" "$in_flight" "${WARM:-20}" read >/dev/null
for round in $(seq "$rounds"); do
    echo "round $round of $rounds" >&2
    for case in "${cases[@]}"; do run "$case" "$round"; done
done

echo "$in_flight in flight, medians of $rounds rounds of $duration s; $(nproc) processors beside" \
    "three servers; $("$oncegate" --version)"
echo
awk -F '\t' -f benches/compare/median.awk -f benches/compare/ensemble.awk "$dir/all"
