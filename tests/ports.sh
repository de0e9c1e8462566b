# Sourced: finds ports on loopback that nobody uses.
# shellcheck shell=bash

is_used() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Room for one ensemble and for one more that a test has of its own.
are_free() {
  local port
  for ((port = $1; port < $1 + 100; port++)); do
    is_used "$port" && return 1
  done
  return 0
}

# The first of a hundred ports in a row.
free_base() {
  local base
  for base in {22180..30080..100}; do
    are_free "$base" && echo "$base" && return
  done
  echo "no free ports between 22180 and 30180" >&2
  return 1
}
