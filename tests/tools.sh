# shellcheck shell=bash
# shellcheck disable=SC2034 # used by those who source it
# What the scripts of the chart and the image share. Sourced, never run.

# work: a folder that is gone afterwards. Programs that are fetched stay where cargo builds.
work=$(mktemp -d)
target=$(cargo metadata --format-version 1 --no-deps --locked |
  sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
tools=$target/tools

fail() {
  echo "FAIL  $*" >&2
  exit 1
}

ok() { echo "ok    $*"; }

# fetch NAME COMMAND...: runs it in a new folder `$tools/NAME`, unless it once did.
fetch() {
  [[ -d $tools/$1 ]] && return
  mkdir -p "$tools"
  rm -rf -- "$tools/$1.new"
  mkdir "$tools/$1.new"
  (cd "$tools/$1.new" && "${@:2}" >&2) || fail "could not fetch $1"
  mv "$tools/$1.new" "$tools/$1"
}

# pip PACKAGE==VERSION...: here. Its scripts name this folder, so call `bin/python -m MODULE`.
pip() {
  python3 -m venv .
  bin/python -m pip install --quiet --disable-pip-version-check "$@"
}
