#!/usr/bin/env bash
# What an on-call team gets, checked with a real Prometheus:
#
#   tests/ops.sh            both of these
#   tests/ops.sh files      alert rules and their tests, the queries of the dashboard, the unit
#   tests/ops.sh live       two gateways on an ensemble, one minute of load, a scraping Prometheus:
#                           the metrics are well-formed, an alert fires, each query is answered
#
# As root it installs Debian's packages prometheus, jq and curl where they are missing. `live` needs
# loopback only; SECONDS_OF_LOAD changes how long it takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rules=$PWD/charts/oncegate/rules/oncegate.yaml
dashboard=charts/oncegate/dashboards/oncegate.json
load=${SECONDS_OF_LOAD:-60}
patience=60 # seconds, of every wait

pids=()
work=$(mktemp -d "${TMPDIR:-/tmp}/oncegate-ops.XXXXXX")

finish() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait
  [[ -z ${ONCEGATE_ZK_DIR:-} ]] || tests/ensemble.sh destroy
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
  echo "ops: $*" >&2
  exit 1
}

need() {
  local program package missing=()
  for package in "$@"; do
    program=${package/prometheus/promtool}
    command -v "$program" >/dev/null || missing+=("$package")
  done
  ((${#missing[@]} == 0)) && return
  ((EUID == 0)) || fail "install these packages first, or run as root: ${missing[*]}"
  {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
  } >"$work/apt.log" 2>&1 || fail "could not install ${missing[*]}: $(tail -3 "$work/apt.log")"
}

# until_true WHAT COMMAND...: polls within `patience`.
until_true() {
  local what=$1 end=$((SECONDS + patience))
  shift
  until "$@"; do
    ((SECONDS < end)) || fail "$what: not within $patience s"
    sleep 0.2
  done
}

# The dashboard's queries, one a line, with Grafana's variables filled in: all that was seen.
queries() {
  # shellcheck disable=SC2016 # The dollars are Grafana's.
  jq -r '.. | .expr? // empty' "$dashboard" |
    sed -e 's/\$__rate_interval/5m/g' -e 's/\$[a-z]*/.*/g'
}

check_files() {
  promtool check rules "$rules"
  (cd charts/oncegate/rules-test && promtool test rules ./*.yaml)
  jq -e '.uid and ([.. | .datasource? | objects | .uid] | unique == ["${datasource}"])' \
    "$dashboard" >/dev/null || fail "a panel of the dashboard has a data source of its own"
  queries | jq -Rn '{groups: [{name: "dashboard", rules: [inputs] | to_entries
    | map({record: "panel:\(.key)", expr: .value})}]}' >"$work/dashboard.yaml"
  promtool check rules "$work/dashboard.yaml"
  check_unit
}

# The unit of systemd, with a program that is there in place of the one it installs.
check_unit() {
  command -v systemd-analyze >/dev/null || { echo "no systemd: its unit is not checked" && return; }
  sed 's|/usr/local/bin/oncegate|/bin/true|' config/oncegate.service >"$work/oncegate.service"
  systemd-analyze verify "$work/oncegate.service"
  systemd-analyze security --offline=true --threshold=15 "$work/oncegate.service" | tail -1
}

# === a live one

# background NAME COMMAND...: its output goes to NAME.log.
background() {
  local name=$1
  shift
  "$@" >"$work/$name.log" 2>&1 &
  pids+=($!)
}

answers() { curl -sf -o /dev/null --max-time 2 "$1"; }

# post PORT KEY [HEADER]: its status. The host is a part of what a retry must repeat.
post() {
  curl -s -o /dev/null -w '%{http_code}\n' --max-time 20 "http://127.0.0.1:$1/v1/charges" \
    -H 'Host: api.test' -H 'X-Api-Key: shop-1' -H "Idempotency-Key: $2" -H "${3:-X-Demo: none}" \
    -d '{"amount": 5, "currency": "eur"}'
}

# Fresh keys on both gateways, and each of them a second time on the other one.
send_load() {
  local end=$((SECONDS + load)) round=0 number port
  while ((SECONDS < end)); do
    for number in {1..50}; do
      for port in "$first" "$second"; do
        cat <<REQUEST
url = "http://127.0.0.1:$port/v1/charges"
header = "Host: api.test"
header = "X-Api-Key: shop-1"
header = "Idempotency-Key: load-$1-$round-$number"
data = "{\\"amount\\": 5, \\"currency\\": \\"eur\\"}"
output = /dev/null
silent
fail
next
REQUEST
      done
    done | curl -K - "http://127.0.0.1:$((first + 5))/livez" -s -o /dev/null || fail "a request of the load was not answered"
    round=$((round + 1))
  done
  echo $((50 * round)) >"$work/keys-$1"
}

start() {
  local base program
  base=$(free_base)
  ONCEGATE_ZK_DIR=$(mktemp -d "$work/zookeeper.XXXXXX")
  ONCEGATE_ZK_PORT=$base
  export ONCEGATE_ZK_DIR ONCEGATE_ZK_PORT
  first=$((base + 80)) second=$((base + 81)) prometheus=$((base + 90))
  api=$((base + 82))
  program=$(cargo metadata --format-version 1 --no-deps --locked | jq -r .target_directory)
  program=$program/debug/oncegate
  # As the step `test` of .ci/run builds it, which then has nothing left to do.
  cargo test --locked --no-run --quiet --test config
  tests/ensemble.sh start
  sed "s/22181/$((base + 1))/; s/22182/$((base + 2))/; s/22183/$((base + 3))/" \
    config/local-ensemble.yaml >"$work/gateway.yaml"
  # The API behind; its own gateway is not used.
  background api "$program" demo --api "127.0.0.1:$api" --listen "127.0.0.1:$((base + 83))" \
    --admin "127.0.0.1:$((base + 84))"
  until_true "the sample API" answers "http://127.0.0.1:$api/executions"
  local port
  for port in "$first" "$second"; do
    LISTEN=127.0.0.1:$port ADMIN=127.0.0.1:$((port + 5)) UPSTREAM=http://127.0.0.1:$api \
      background "gateway-$port" "$program" serve --config "$work/gateway.yaml"
  done
  for port in "$first" "$second"; do
    until_true "a gateway" answers "http://127.0.0.1:$((port + 5))/readyz"
  done
  cat >"$work/prometheus.yaml" <<CONFIG
global: { scrape_interval: 2s, evaluation_interval: 2s }
rule_files: [$rules]
scrape_configs:
  - job_name: oncegate
    static_configs: [{ targets: ["127.0.0.1:$((first + 5))", "127.0.0.1:$((second + 5))"] }]
CONFIG
  background prometheus prometheus --config.file "$work/prometheus.yaml" \
    --storage.tsdb.path "$work/tsdb" --web.listen-address "127.0.0.1:$prometheus"
  until_true "Prometheus" answers "http://127.0.0.1:$prometheus/-/ready"
}

fires() {
  curl -sf "http://127.0.0.1:$prometheus/api/v1/alerts" |
    jq -e --arg name "$1" 'any(.data.alerts[]; .labels.alertname == $name and .state == "firing")' \
      >/dev/null
}

# finds QUERY: Prometheus answers it with data. Of an error nothing is said here.
finds() { promtool query instant "http://127.0.0.1:$prometheus" "$1" 2>/dev/null | grep -q .; }

# counts PORT SAMPLE: the gateway at this port tells this.
counts() { curl -sf "http://127.0.0.1:$(($1 + 5))/metrics" | grep -qxF "$2"; }

check_metrics() {
  local port found
  # The demo's gateway is one without an ensemble.
  for port in "$first" "$second" $((first - 1)); do
    found=$(curl -sf "http://127.0.0.1:$((port + 5))/metrics" | promtool check metrics 2>&1 |
      grep -vE '^zk_(ephemeral_nodes_total|operation_latency_ms) ') || true
    [[ -z $found ]] || fail "promtool check metrics: $found"
  done
}

check_live() {
  start
  local statuses query empty=0 asked=0 keys executions
  # Before the first pass of the sweeper: these charges are executed and never answered.
  statuses=$(for key in cut-1 cut-2 cut-3; do post "$first" "$key" 'X-Demo: cut'; done)
  [[ $statuses == $'502\n502\n502' ]] || fail "a call that breaks off is answered with $statuses"
  # One key on two gateways at once: the second waits for the first.
  post "$first" shared 'X-Demo: slow' >"$work/shared" &
  local leader=$!
  until_true "a key in flight" counts "$first" 'oncegate_keys_in_flight{route="charges"} 1'
  statuses=$(post "$second" shared)
  [[ $statuses == 201 ]] || fail "the second of two equal requests gets $statuses"
  wait "$leader"
  send_load a &
  local loads=$!
  send_load b
  wait "$loads"
  statuses=$(post "$first" cut-4 'X-Demo: cut')
  [[ $statuses == 502 ]] || fail "a call that breaks off is answered with $statuses"
  until_true "a scrape of it" finds 'increase(oncegate_requests_total{outcome="upstream_interrupted"}[5m]) > 0'
  check_metrics
  until_true "the alert OncegateKeysUnknown" fires OncegateKeysUnknown
  while IFS= read -r query; do
    promtool query instant "http://127.0.0.1:$prometheus" "$query" >"$work/answer" ||
      fail "Prometheus refuses $query"
    asked=$((asked + 1))
    grep -q . "$work/answer" || { empty=$((empty + 1)) && echo "no data: $query"; }
  done < <(queries)
  ((empty == 0)) || fail "$empty of $asked queries of the dashboard have no answer"
  keys=$((5 + $(cat "$work/keys-a") + $(cat "$work/keys-b")))
  executions=$(curl -sf "http://127.0.0.1:$api/executions")
  ((executions == keys)) || fail "$keys keys were executed $executions times"
  echo "ops: an alert fired, $asked queries were answered, each of $keys keys was executed once"
}

# shellcheck source=tests/ports.sh
. tests/ports.sh
need prometheus jq curl
case ${1:-all} in
files) check_files ;;
live) check_live ;;
all)
  check_files
  check_live
  ;;
*) fail "there is no '$1': it is files or live" ;;
esac
