#!/usr/bin/env bash
# All tests, those on a real ZooKeeper ensemble included:
#
#   tests/run.sh [ARGUMENTS OF cargo test]      e.g. tests/run.sh --test zookeeper lost_replies
#
# It starts three servers (see ensemble.sh for what can be set) on the first ports from 22180 that
# nobody uses, and ends them however it ends itself. An ensemble that already runs is used and left
# alone when ONCEGATE_TEST_ZK names its servers; ONCEGATE_ZK_DIR and ONCEGATE_ZK_PORT must then be
# those that it was started with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. tests/ports.sh

if [[ -z ${ONCEGATE_TEST_ZK:-} ]]; then
  ONCEGATE_ZK_DIR=$(mktemp -d "${TMPDIR:-/tmp}/oncegate-zookeeper.XXXXXX")
  ONCEGATE_ZK_PORT=${ONCEGATE_ZK_PORT:-$(free_base)}
  export ONCEGATE_ZK_DIR ONCEGATE_ZK_PORT
  trap 'tests/ensemble.sh destroy' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  tests/ensemble.sh start
  ONCEGATE_TEST_ZK=$(tests/ensemble.sh servers)
  export ONCEGATE_TEST_ZK
fi

cargo test --locked "$@"
