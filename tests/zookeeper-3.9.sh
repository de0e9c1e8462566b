#!/usr/bin/env bash
# Fetches ZooKeeper 3.9 from Debian 13 for a Debian 12 machine, whose own 3.8.0 can hang the write
# of a lone client for seconds (ZOOKEEPER-4537). Prints a class path:
#
#   ONCEGATE_ZK_CLASSPATH=$(tests/zookeeper-3.9.sh [FOLDER]) tests/run.sh --test zookeeper
#
# It uses the machine's own mirror and touches none of its package lists. Debian 12's `zookeeper`
# must be installed: the other jars are its.
set -euo pipefail

folder=${1:-${TMPDIR:-/tmp}/oncegate-zookeeper-3.9}
java=/usr/share/java

if ! compgen -G "$folder/usr/share/java/zookeeper-3*.jar" >/dev/null; then
  scratch=$(mktemp -d)
  trap 'rm -rf -- "$scratch"' EXIT
  chmod 755 "$scratch"
  mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial" "$folder"
  # shellcheck disable=SC2016 # apt expands it
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keyring] $mirror trixie main" >"$scratch/sources.list"
  cat >"$scratch/apt.conf" <<END
Dir::Etc::sourcelist "$scratch/sources.list";
Dir::Etc::sourceparts "/nonexistent";
Dir::State::lists "$scratch/lists";
Dir::Cache "$scratch/cache";
APT::Sandbox::User "root";
END
  export APT_CONFIG=$scratch/apt.conf
  apt-get update -qq >&2
  (cd "$scratch" && apt-get download -qq libzookeeper-java >&2)
  dpkg -x "$scratch"/libzookeeper-java_*.deb "$folder"
fi

jars=("$folder"/usr/share/java/zookeeper-jute-3*.jar "$folder"/usr/share/java/zookeeper-3*.jar)
# Jute comes first: the manifest of zookeeper.jar names Debian 12's, which would win.
echo "${jars[0]}:${jars[1]}:$java/slf4j-api.jar:$java/slf4j-simple.jar:$java/metrics-core.jar:$java/snappy-java.jar:$java/servlet-api.jar"
