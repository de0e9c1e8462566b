#!/usr/bin/env bash
# All tests, those on a real ZooKeeper ensemble included:
#
#   tests/run.sh [ARGUMENTS OF cargo test]      e.g. tests/run.sh --test zookeeper lost_replies
#
# It starts three servers (see ensemble.sh for what can be set), which end with it however it
# ends. An ensemble of one's own that already runs is used and left alone when ONCEGATE_TEST_ZK
# names its servers and ONCEGATE_ZK_DIR its folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -z ${ONCEGATE_TEST_ZK:-} ]]; then
  ONCEGATE_ZK_DIR=$(mktemp -d "${TMPDIR:-/tmp}/oncegate-zookeeper.XXXXXX")
  export ONCEGATE_ZK_DIR
  trap 'tests/ensemble.sh destroy' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  tests/ensemble.sh start
  ONCEGATE_TEST_ZK=$(tests/ensemble.sh servers)
  export ONCEGATE_TEST_ZK
fi

cargo test --locked "$@"
