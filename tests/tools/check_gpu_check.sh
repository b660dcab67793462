#!/usr/bin/env bash
# tools/gpu_check.sh in its dry form: every step runs on the CPU, and steps that fail do not stop the rest.
#
#   tests/tools/check_gpu_check.sh SOURCES PROGRAMS
set -euo pipefail
readonly sources=$1 programs=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

GANYMEDE_PROGRAMS=$programs "$sources/tools/gpu_check.sh" dry "$scratch/run" || fail "the dry run"
for name in smoke-eager smoke-graph tests memcheck racecheck step-mlp-gan-fp32 step-dcgan-28-eager limits trace-mlp-gan; do
  grep -q "^ok .* $name\$" "$scratch/run/summary.txt" || fail "no step $name"
done
tar -tzf "$scratch/run/results.tar.gz" | grep -q 'mlp-gan.json' || fail "the results lack the trace"

# Nothing but the step is in a trace's last phase: it once held the measurement of the device's limits, with 645,427
# launches.
python3 - "$scratch/run/mlp-gan.json" <<'PYTHON' || fail "the trace"
import json, statistics, sys
trace = json.load(open(sys.argv[1]))
assert [entry["batch"] for entry in trace["batches"]] == [2, 3], trace["batches"]
assert trace["device"]["host_copy"], trace["device"]
for entry in trace["batches"]:
    last = next(phase for phase in entry["phases"] if phase["name"] == "generator.update")
    assert last["launches"] == 1, last["launches"]
    assert last["seconds"][-1] < 0.2, last["seconds"][-5:]  # measuring takes half a second, a step 5 ms
PYTHON

# Programs of which one fails.
mkdir "$scratch/broken"
printf '#!/bin/sh\n[ "$1" = --help ] || { echo "out of luck"; exit 3; }\n' >"$scratch/broken/kernel_step"
printf '#!/bin/sh\n[ "$1" = --gtest_list_tests ] && printf "CudaSteps.\\n  One\\n"\nexit 0\n' >"$scratch/broken/kernel_test"
chmod +x "$scratch/broken/"*
if GANYMEDE_PROGRAMS=$scratch/broken "$sources/tools/gpu_check.sh" dry "$scratch/broken-run" >/dev/null; then
  fail "it ends well though a program fails"
fi
for line in 'FAILED .* smoke-eager: exit code 3: out of luck' 'ok .* tests' 'FAILED .* trace-mlp-gan'; do
  grep -q "^$line" "$scratch/broken-run/summary.txt" || fail "no line $line"
done
