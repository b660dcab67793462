#!/usr/bin/env bash
# Simulates a study in shards on files that lie (lying_files.cpp). A shard either does its work or ends with exit code 1;
# what it leaves is never merged to other bytes than those of one process, and the next start does the rest.
#
#   tests/cli/on_lying_files.sh PROGRAM MODULE
set -euo pipefail

program=$1 module=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }

cat >study.json <<JSON
{ "schema": "ganymede.study/1", "name": "Small study",
  "workload": { "trace": "$here/../../traces/recorded/progressive-gan-cpu.json", "batch_per_gpu": 16,
    "dataset": { "name": "faces", "images": 200000, "bytes_per_image": 12288 }, "images": 150000000 },
  "platforms": [ { "catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "market": "spot", "max_nodes": 2,
    "lifetimes": { "mean": "4h", "back_after": "2h" } } ],
  "gpus": [4], "schemes": ["ring"], "policies": ["fixed", "spot-first"], "seeds": { "first": 1, "count": 8 } }
JSON
"$program" --quiet sweep study.json --format json -o whole.json

# Runs a command on lying files; prints its exit code.
lying() { LYING_FILES=$wrong LD_PRELOAD=$module "$program" --quiet "$@" 2>>"$wrong.log" && echo 0 || echo $?; }

for wrong in no-locks interrupted short slow error no-sync stale renamed-twice; do
  codes="$(lying sweep study.json --shard 0/2 -o "$wrong") $(lying sweep study.json --shard 1/2 -o "$wrong")"
  case $wrong in
    # Twice renamed: a shard finds the shards.json that it has made.
    no-locks | interrupted | short | slow | renamed-twice) expected="0 0" ;;
    *) expected="1 1" ;;
  esac
  [[ $codes == "$expected" ]] || fail "$wrong: exit codes $codes, expected $expected: $(cat "$wrong.log")"
  "$program" --quiet merge "$wrong" -o merged.json 2>/dev/null && { cmp whole.json merged.json || fail "$wrong: other bytes"; }
  "$program" --quiet sweep study.json --shard 0/1 -o "$wrong" || fail "$wrong: the next start does not do the rest"
  "$program" --quiet merge "$wrong" -o merged.json && cmp whole.json merged.json || fail "$wrong: other bytes after the next start"
  echo "$wrong: exit codes $codes"
done
