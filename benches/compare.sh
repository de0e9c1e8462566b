#!/usr/bin/env bash
# Requests per second of oncegate and of two plain proxies, in front of the same trivial upstream.
#
#   benches/compare.sh                     every case, as a table in Markdown
#   benches/compare.sh plain durable       some cases, e.g. to profile them
#
# direct, nginx, haproxy, plain   a GET; with -post a POST of 100 bytes
# replay, replays                 a POST whose key has its answer: one key, many keys
# fresh                           a POST with a new key each, keys kept in memory
# durable, durable-1              the same with keys on disk, and over one connection
#
# Each case is compared with the direct and the nginx case of its method. A case's figures are
# the medians of its rounds; a round goes through all cases.
#
# ROUNDS=3 DURATION=5 CONNECTIONS=64 THREADS=2 KEYS=1024
# ONCEGATE=FILE   the binary; without it the release build is made
# DATA=FOLDER     where the ledger's file and all else is put: its disk decides what `durable` makes
# PROFILE=FOLDER  also writes FOLDER/CASE.data with `perf record` of the proxy
#
# Uses the ports 18080 to 18083 and 18090 of 127.0.0.1. Needs wrk, curl, nginx and haproxy, and
# installs what is missing on Debian as root. A failed request, or an upstream that executed more
# or less often than the case says, ends the run with an error.

set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${ROUNDS:-3} duration=${DURATION:-5} connections=${CONNECTIONS:-64} threads=${THREADS:-2}
keys=${KEYS:-1024}
all=(direct direct-post nginx nginx-post haproxy haproxy-post
     plain plain-post replay replays fresh durable durable-1)
cases=("${@:-${all[@]}}")
oncegate=18080 admin=18081 nginx=18082 haproxy=18083 upstream=18090
memory='{ kind: embedded, embedded: { durability: memory } }'
tick=$(getconf CLK_TCK)

fail() { echo "compare.sh: $*" >&2; exit 1; }

install_missing() {
    local missing=()
    command -v wrk >/dev/null || missing+=(wrk)
    command -v curl >/dev/null || missing+=(curl)
    command -v nginx >/dev/null || missing+=(nginx-light)
    command -v haproxy >/dev/null || missing+=(haproxy)
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || fail "please install ${missing[*]}"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# What was started and still runs, ended by its id.
upstream_pid='' proxy_pid='' dir=''
stop() {
    [ -n "$1" ] || return 0
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
clean_up() {
    stop "$proxy_pid"
    stop "$upstream_pid"
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
    cat "$dir/log" >&2
    fail "nothing answers at port $2"
}

# The configuration of a program with its ports, folder and ledger filled in.
filled() {
    sed -e "s|@ONCEGATE@|$oncegate|; s|@ADMIN@|$admin|; s|@NGINX@|$nginx|; s|@HAPROXY@|$haproxy|" \
        -e "s|@UPSTREAM@|$upstream|; s|@DIR@|$dir|; s|@LEDGER@|${2:-}|" \
        "benches/compare/$1" >"$dir/$1"
    echo "$dir/$1"
}

# Starts the proxy of a case. A ledger starts empty, so that rounds are alike.
start_proxy() {
    proxy_pid=''
    case $1 in
        direct*) port=$upstream; return ;;
        nginx*) port=$nginx; nginx -e stderr -c "$(filled nginx.conf)" 2>"$dir/log" & ;;
        haproxy*) port=$haproxy; haproxy -q -f "$(filled haproxy.cfg)" 2>"$dir/log" & ;;
        *)
            port=$oncegate
            rm -f "$dir"/ledger.redb*
            "$binary" serve --config "$(filled oncegate.yaml "$2")" >"$dir/log" 2>&1 & ;;
    esac
    proxy_pid=$!
    await "$proxy_pid" "$port"
}

# Ticks of processor that a process, its threads and its children used.
ticks() {
    [ -n "$1" ] || { echo 0; return; }
    local pid sum=0 stat
    for pid in "$1" $(cat "/proc/$1/task/$1/children"); do
        stat=$(cat "/proc/$pid/stat")
        # Fields 14 and 15, counted after the name, which may contain blanks.
        read -ra stat <<<"${stat##*) }"
        sum=$((sum + stat[11] + stat[12]))
    done
    echo "$sum"
}

# How many requests the upstream has answered; asking is one of them.
executed() { curl -s "127.0.0.1:$upstream/requests" | awk 'NR == 3 { print $3 }'; }

load() {
    local seconds=$1; shift
    wrk -t "$load_threads" -c "$load_connections" -d "${seconds}s" --timeout 10s \
        -s benches/compare/load.lua "http://127.0.0.1:$port$path" -- "$@"
}

# One case in one round: a line of figures for the report.
run() {
    local case=$1 round=$2 mode=post base=post ledger=$memory
    local nonce=$run-$round-$case load_keys=0
    load_connections=$connections load_threads=$threads path=/v1/charges
    case $case in
        direct | nginx | haproxy | plain) mode=get base=get path=/v1/reports ;;
        direct-post | nginx-post | haproxy-post | plain-post) path=/v1/reports ;;
        replay) mode=replay load_keys=1 ;;
        replays) mode=replay load_keys=$keys ;;
        fresh) mode=fresh ;;
        durable) mode=fresh ledger="{ kind: embedded, embedded: { path: $dir/ledger.redb } }" ;;
        durable-1) mode=fresh ledger="{ kind: embedded, embedded: { path: $dir/ledger.redb } }" load_connections=1 load_threads=1 ;;
        *) fail "no case $case; there are ${all[*]}" ;;
    esac
    start_proxy "$case" "$ledger"
    local before_proxy before_upstream before_executed profiler=''
    while true; do
        before_executed=$(executed)
        load 1 "$mode" "$nonce-warm" "$load_keys" >/dev/null
        # What the load generator left in flight must not count.
        sleep 0.2
        # Replays are warm when every key has its answer.
        [ $mode = replay ] || break
        [ $(($(executed) - before_executed)) -gt 1 ] || break
    done
    [ $mode = fresh ] || nonce=$nonce-warm

    if [ -n "${PROFILE:-}" ] && [ -n "$proxy_pid" ]; then
        mkdir -p "$PROFILE"
        perf record -q -F 1999 -e cpu-clock -g -o "$PROFILE/$case.data" -p "$proxy_pid" \
            -- sleep "$duration" & profiler=$!
    fi
    before_executed=$(executed) before_proxy=$(ticks "$proxy_pid")
    before_upstream=$(ticks "$upstream_pid")
    local times requests micros errors p50 p99 _
    exec 3>&1
    times=$({ TIMEFORMAT='%U %S'; time load "$duration" "$mode" "$nonce" "$load_keys" >"$dir/wrk" 2>&3; } 2>&1)
    exec 3>&-
    local ticks_proxy=$(($(ticks "$proxy_pid") - before_proxy))
    local ticks_upstream=$(($(ticks "$upstream_pid") - before_upstream))
    sleep 0.2
    local ran=$(($(executed) - before_executed - 1))
    [ -z "$profiler" ] || wait "$profiler"
    stop "$proxy_pid"
    proxy_pid=''

    read -r _ requests micros errors p50 p99 < <(grep '^figures' "$dir/wrk") || fail "$case: no figures"
    [ "$errors" = 0 ] || { cat "$dir/wrk" "$dir/log" >&2; fail "$case: $errors requests failed"; }
    if [ "$mode" = replay ]; then
        [ "$ran" = 0 ] || fail "$case: the upstream executed $ran times for keys that had answers"
    elif [ "$ran" -lt "$requests" ] || [ "$ran" -gt $((requests + load_connections)) ]; then
        fail "$case: the upstream executed $ran times for $requests requests"
    fi
    awk -v OFS='\t' -v case="$case" -v base=$base -v n="$requests" -v us="$micros" -v p50="$p50" \
        -v p99="$p99" -v tick="$tick" -v proxy="$ticks_proxy" -v upstream="$ticks_upstream" -v wrk="$times" '
        BEGIN {
            split(wrk, used, " ")
            each = 1e6 / n
            print case, base, n * 1e6 / us, p50, p99, proxy / tick * each,
                upstream / tick * each, (used[1] + used[2]) * each
        }' >>"$dir/figures"
    tail -n 1 "$dir/figures" | awk '{ printf "  %s: %.0f/s\n", $1, $3 }' >&2
}

install_missing
for port in $oncegate $admin $nginx $haproxy $upstream; do
    if (exec 4<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then fail "port $port is taken"; fi
done
binary=${ONCEGATE:-}
if [ -z "$binary" ]; then
    cargo build --release --locked >&2
    binary=${CARGO_TARGET_DIR:-target}/release/oncegate
fi
[ -x "$binary" ] || fail "there is no program $binary"
dir=$(mktemp -d "${DATA:-${TMPDIR:-/tmp}}/oncegate-compare.XXXXXX")
run=$(date +%s)-$$

nginx -e stderr -c "$(filled upstream.conf)" 2>"$dir/log" &
upstream_pid=$!
await "$upstream_pid" "$upstream"
for round in $(seq "$rounds"); do
    echo "round $round of $rounds" >&2
    for case in "${cases[@]}"; do run "$case" "$round"; done
done

echo "$connections connections, $threads threads of wrk, medians of $rounds rounds of $duration s;" \
    "$(nproc) processors, ledger on $(stat -f -c %T "$dir"); $("$binary" --version)"
echo
awk -F '\t' -f benches/compare/median.awk -f benches/compare/report.awk "$dir/figures"
