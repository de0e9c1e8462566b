#!/usr/bin/env bash
# A real ZooKeeper ensemble on loopback: three plain server processes with small heaps.
#
#   ensemble.sh start          writes the configuration, starts all servers, waits for a quorum
#   ensemble.sh stop           ends the servers; the data stays
#   ensemble.sh destroy        ends the servers and deletes the data
#   ensemble.sh kill N         kill -9 of server N, until it is gone
#   ensemble.sh pause N        SIGSTOP; `resume N` is SIGCONT
#   ensemble.sh restart N      starts server N again (ends it first if it runs) and waits for it
#   ensemble.sh heal           resumes and starts whatever a fault has left, waits for all
#   ensemble.sh wait           waits until every running server serves
#   ensemble.sh leader         the number of the leader; fails when there is none
#   ensemble.sh mntr N         the server's own counters; `4lw N WORD` sends any such word
#   ensemble.sh status         one line a server
#   ensemble.sh servers        what clients connect to, e.g. 127.0.0.1:22181,...
#
# N may be a number, `leader` or `all`.
#
# Environment (all optional)
#   ONCEGATE_ZK_DIR        configuration, data, logs and pids  (TMPDIR/oncegate-zookeeper)
#   ONCEGATE_ZK_PORT       server N serves clients at PORT+N, its peers at PORT+10+N and
#                          elects at PORT+20+N                 (22180)
#   ONCEGATE_ZK_SERVERS    how many                            (3)
#   ONCEGATE_ZK_TICK       tickTime in ms                      (500: faults are over sooner)
#   ONCEGATE_ZK_TIER       1: servers start quickly; 4: they run fastest, after a while  (1)
#   ONCEGATE_ZK_HEAP       of each server                      (128m)
#   ONCEGATE_ZK_CLASSPATH  other server jars than Debian's     (see zookeeper-3.9.sh)
#   ONCEGATE_ZK_CONFIG     more lines of every zoo.cfg
#   ONCEGATE_ZK_ENV        "NAME=VALUE ...": more in the environment of every server
#   ONCEGATE_ZK_VIA        "I:J=PORT ...": server I reaches server J's quorum port through PORT,
#                          where a test can put a proxy
set -euo pipefail

dir=${ONCEGATE_ZK_DIR:-${TMPDIR:-/tmp}/oncegate-zookeeper}
base=${ONCEGATE_ZK_PORT:-22180}
size=${ONCEGATE_ZK_SERVERS:-3}
tick=${ONCEGATE_ZK_TICK:-500}
heap=${ONCEGATE_ZK_HEAP:-128m}
patience=60 # seconds, of every wait

java=/usr/share/java
classpath=${ONCEGATE_ZK_CLASSPATH:-$java/zookeeper.jar:$java/slf4j-api.jar:$java/slf4j-simple.jar:$java/metrics-core.jar:$java/snappy-java.jar:$java/servlet-api.jar}
# For a secure client port.
for part in buffer codec common handler resolver transport transport-native-epoll transport-native-unix-common; do
  classpath+=:$java/netty-$part.jar
done

fail() {
  echo "ensemble: $*" >&2
  exit 1
}

# A Debian package each: the servers, a client that nobody here wrote, and wrong wall clocks.
install_packages() {
  local missing=()
  [[ -e $java/zookeeper.jar ]] || missing+=(zookeeper)
  [[ -e $java/slf4j-simple.jar ]] || missing+=(libslf4j-java)
  [[ -e /usr/lib/python3/dist-packages/kazoo ]] || missing+=(python3-kazoo)
  [[ -e /usr/bin/faketime ]] || missing+=(faketime)
  ((${#missing[@]} == 0)) && return
  ((EUID == 0)) || fail "install these packages first, or run as root: ${missing[*]}"
  {
    apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
  } >&2
}

pid_of() { cat "$dir/$1/pid" 2>/dev/null || true; }

# A pid is ours only while that process has this server's file on its command line. A zombie has
# an empty one, and so counts as gone.
is_running() {
  local pid
  pid=$(pid_of "$1")
  [[ -n $pid ]] && { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF "$dir/$1/zoo.cfg"
}

# until_true WHAT COMMAND...: polls within `patience`.
until_true() {
  local what=$1 end=$((SECONDS + patience))
  shift
  until "$@"; do
    ((SECONDS < end)) || fail "$what: not within $patience s; see $dir/*/server.log"
    sleep 0.05
  done
}

# word N WORD: one of the servers' four-letter words.
word() {
  # shellcheck disable=SC2016 # the inner shell expands its own arguments
  timeout 2 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf %s "$1" >&3 && cat <&3' \
    "$((base + $1))" "$2" 2>/dev/null
}

mode_of() { word "$1" srvr | sed -n 's/^Mode: //p'; }

serves() { [[ -n $(mode_of "$1") ]]; }

leader() {
  local server
  for ((server = 1; server <= size; server++)); do
    case $(mode_of "$server") in
    leader | standalone)
      echo "$server"
      return
      ;;
    esac
  done
  return 1
}

# The numbers meant by N.
chosen() {
  case ${1:?which server?} in
  all) seq "$size" ;;
  leader) leader || fail "no server leads" ;;
  *)
    [[ $1 =~ ^[1-9][0-9]*$ ]] || fail "no server $1"
    (($1 <= size)) || fail "no server $1"
    echo "$1"
    ;;
  esac
}

# The quorum port at which server I finds server J.
quorum_port() {
  local via
  for via in ${ONCEGATE_ZK_VIA:-}; do
    [[ $via == "$1:$2="* ]] && echo "${via#*=}" && return
  done
  echo $((base + 10 + $2))
}

configure() {
  local server=$1 peer
  mkdir -p "$dir/$server/data"
  echo "$server" >"$dir/$server/data/myid"
  {
    echo "tickTime=$tick"
    # In ticks: a peer may be silent this long. Longer than a pause that must cost no election.
    echo "initLimit=40"
    echo "syncLimit=20"
    echo "dataDir=$dir/$server/data"
    echo "clientPort=$((base + server))"
    echo "clientPortAddress=127.0.0.1"
    echo "maxClientCnxns=0"
    echo "4lw.commands.whitelist=*"
    echo "admin.enableServer=false"
    [[ -z ${ONCEGATE_ZK_CONFIG:-} ]] || echo "$ONCEGATE_ZK_CONFIG"
    ((size == 1)) || for ((peer = 1; peer <= size; peer++)); do
      echo "server.$peer=127.0.0.1:$(quorum_port "$server" "$peer"):$((base + 20 + peer))"
    done
  } >"$dir/$server/zoo.cfg"
}

start_server() {
  local server=$1 port=$((base + $1))
  is_running "$server" && return
  [[ -f $dir/$server/zoo.cfg ]] || fail "server $server was never started"
  (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null &&
    fail "port $port is in use; set ONCEGATE_ZK_PORT to another base"
  # shellcheck disable=SC2086 # each word is a variable
  setsid env ${ONCEGATE_ZK_ENV:-} java -Xmx"$heap" -Xms"$heap" -XX:+UseSerialGC "-XX:TieredStopAtLevel=${ONCEGATE_ZK_TIER:-1}" \
    -Dzookeeper.jmx.log4j.disable=true \
    -Dorg.slf4j.simpleLogger.showDateTime=true \
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS" \
    -cp "$classpath" org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/$server/zoo.cfg" \
    >>"$dir/$server/server.log" 2>&1 </dev/null &
  echo $! >"$dir/$server/pid"
  # Between fork and exec the command line is not yet the server's.
  until_true "start of server $server" is_running "$server"
}

is_gone() { ! is_running "$1"; }

# end_server N SIGNAL: until it is gone; SIGKILL for one that does not follow in 5 s.
end_server() {
  local server=$1 pid tries
  if is_running "$server"; then
    pid=$(pid_of "$server")
    kill "-$2" "$pid" 2>/dev/null || true
    kill -CONT "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 100; tries++)); do
      is_gone "$server" && break
      sleep 0.05
    done
    is_gone "$server" || kill -KILL "$pid" 2>/dev/null || true
    until_true "end of server $server" is_gone "$server"
  fi
  rm -f "$dir/$server/pid"
}

signal_server() {
  is_running "$1" || fail "server $1 does not run"
  kill "-$2" "$(pid_of "$1")"
}

wait_all() {
  local server
  for ((server = 1; server <= size; server++)); do
    is_gone "$server" || until_true "service of server $server" serves "$server"
  done
}

status() {
  local server
  for ((server = 1; server <= size; server++)); do
    if is_running "$server"; then
      echo "$server port=$((base + server)) pid=$(pid_of "$server") mode=$(mode_of "$server")"
    else
      echo "$server port=$((base + server)) down"
    fi
  done
}

each() {
  local server servers command=$1
  servers=$(chosen "$2")
  shift 2
  for server in $servers; do "$command" "$server" "$@"; done
}

case ${1:-} in
start)
  install_packages
  for ((server = 1; server <= size; server++)); do
    configure "$server"
    start_server "$server"
  done
  wait_all
  ;;
stop) each end_server all TERM ;;
destroy)
  each end_server all TERM
  # Only what `start` made: the folder may be someone's.
  for ((server = 1; server <= size; server++)); do rm -rf -- "${dir:?}/$server"; done
  rmdir -- "$dir" 2>/dev/null || true
  ;;
kill) each end_server "${2:-}" KILL ;;
pause) each signal_server "${2:-}" STOP ;;
resume) each signal_server "${2:-}" CONT ;;
restart)
  each end_server "${2:-}" TERM
  each start_server "${2:-}"
  wait_all
  ;;
heal)
  for ((server = 1; server <= size; server++)); do
    if is_running "$server"; then signal_server "$server" CONT; else start_server "$server"; fi
  done
  wait_all
  ;;
wait) wait_all ;;
leader) leader ;;
mntr) each word "${2:-}" mntr ;;
4lw) each word "${2:-}" "${3:?which word?}" ;;
status) status ;;
servers) seq -s, -f '127.0.0.1:%.0f' $((base + 1)) $((base + size)) ;;
*)
  sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 2
  ;;
esac
