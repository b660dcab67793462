#!/usr/bin/env bash
# tools/gpu_check.sh over the stand-in of CUDA's libraries, or, where that is not built, in its dry form on the CPU. Every step
# runs, and steps that fail do not stop the rest.
#
#   tests/tools/check_gpu_check.sh SOURCES BUILD
set -euo pipefail
readonly sources=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*"; cat "$scratch"/*/summary.txt; exit 1; }

steps=(smoke-eager smoke-graph tests memcheck racecheck step-mlp-gan-fp32 step-dcgan-28-eager limits trace-mlp-gan trace-dcgan-28)
readonly module=$build/stand_in/libganymede_cuda.so driver=$build/stand_in/libcuda_stand_in_driver.so
if [[ -f $module && -f $driver ]]; then
  run=short kind=gpu steps+=(step-mlp-gan-tf32 step-dcgan-28-bf16 cudnn-device algorithms)
  mkdir -p "$scratch/programs/bin" "$scratch/programs/lib/ganymede" "$scratch/tools"
  # Hard links have their own paths, beside which a program looks for the module.
  for program in kernel_test kernel_step; do
    ln "$build/bin/$program" "$scratch/programs/bin/" 2>/dev/null || cp "$build/bin/$program" "$scratch/programs/bin/"
  done
  ln -s "$module" "$scratch/programs/lib/ganymede/"
  ln -s "$module" "$scratch/programs/lib/libcudnn.so.9"
  # NVIDIA's tools, as far as the script needs them: one runs a program, and one of its two uses fails.
  cat >"$scratch/tools/compute-sanitizer" <<'TOOL'
#!/bin/sh
case "$*" in *--version*) exit 0 ;; *racecheck*) echo "a hazard was found"; exit 9 ;; esac
[ "$1 $2 $3 $4" = "--error-exitcode 9 --tool memcheck" ] && shift 4 && exec "$@"
TOOL
  cat >"$scratch/tools/ncu" <<'TOOL'
#!/bin/sh
printf '"Kernel Name","Metric Value"\n"slow","1,000"\n"fast","20"\n"slow","500"\n'
TOOL
  chmod +x "$scratch/tools/"*
  export PATH=$scratch/tools:$PATH LD_PRELOAD=$driver LD_LIBRARY_PATH=$scratch/programs/lib
  programs=$scratch/programs/bin
else
  run=dry kind=cpu programs=$build/bin
fi
readonly run kind programs

status=0
GANYMEDE_PROGRAMS=$programs "$sources/tools/gpu_check.sh" "$run" "$scratch/run" || status=$?
if [[ $run == short ]]; then
  [[ $status == 1 ]] || fail "a step fails, and the exit code is $status"
  steps=("${steps[@]/racecheck/}")
  grep -q '^FAILED .* racecheck: exit code 9: a hazard was found$' "$scratch/run/summary.txt" || fail "racecheck does not fail"
  grep -q '"name": "stand-in"' "$scratch/run/cudnn-device.json" || fail "the description of the GPU"
  grep -q '^stand-in, cuDNN 91900, bf16, weights: batch 2 .* algorithms; first' "$scratch/run/algorithms.log" || fail "the algorithms"
  grep -q '^ *1500 slow$' "$scratch/run/longest.txt" || fail "the longest kernels"
  grep -q '^skipped .*BatchNorm' "$scratch/run/tests.txt" && fail "tests of the GPU are skipped"
elif [[ $status != 0 ]]; then
  fail "the dry run"
fi
for name in "${steps[@]}"; do
  [[ -z $name ]] || grep -q "^ok .* $name\$" "$scratch/run/summary.txt" || fail "no step $name"
done
grep -q '^skipped .* torch: it is left out' "$scratch/run/summary.txt" || fail "PyTorch is not said to be skipped"
tar -tzf "$scratch/run/results.tar.gz" | grep -q 'mlp-gan.json' || fail "the results lack the trace"

# Nothing but the step is in a trace's last phase, on a GPU and on the CPU, whose steps end differently: it once held the
# measurement of the device's limits, with 645,427 launches.
env -u LD_PRELOAD "$build/bin/kernel_step" --model mlp-gan --batch 2,3 --threads 1 --min-time 0 --record "$scratch/cpu.json" >/dev/null ||
  fail "kernel_step --record"
python3 - "$scratch/run/mlp-gan.json" $kind "$scratch/cpu.json" cpu <<'PYTHON' || fail "the trace"
import json, sys
for path, kind in zip(sys.argv[1::2], sys.argv[2::2]):
    trace = json.load(open(path))
    assert [entry["batch"] for entry in trace["batches"]] == [2, 3], trace["batches"]
    assert trace["device"]["host_copy"] and trace["device"]["kind"] == kind, trace["device"]
    for entry in trace["batches"]:
        last = next(phase for phase in entry["phases"] if phase["name"] == "generator.update")
        assert last["launches"] == 1, (kind, last["launches"])
        assert last["seconds"][-1] < 0.2, last["seconds"][-5:]  # measuring takes half a second, a step 5 ms
PYTHON

# Programs of which one fails.
mkdir "$scratch/broken"
printf '#!/bin/sh\n[ "$1" = --help ] || { echo "out of luck"; exit 3; }\n' >"$scratch/broken/kernel_step"
printf '#!/bin/sh\n[ "$1" = --gtest_list_tests ] && printf "CudaSteps.\\n  One\\n"\nexit 0\n' >"$scratch/broken/kernel_test"
chmod +x "$scratch/broken/"*
if GANYMEDE_PROGRAMS=$scratch/broken "$sources/tools/gpu_check.sh" $run "$scratch/broken-run" >/dev/null; then
  fail "it ends well though a program fails"
fi
for line in 'FAILED .* smoke-eager: exit code 3: out of luck' 'ok .* tests' 'FAILED .* trace-mlp-gan'; do
  grep -q "^$line" "$scratch/broken-run/summary.txt" || fail "no line $line"
done

# Its losses, which PyTorch's are compared with, are those of the program.
readonly training=(--model mlp-gan --batch 4 --seed 2 --d-steps 2 --loss hinge --lr 0.001 --epsilon 1e-4 --backend cpu --threads 1)
"$build/bin/kernel_step" --losses 3 "${training[@]}" --weights "$scratch/step.safetensors" >"$scratch/step.json" || fail "kernel_step --losses"
"$build/bin/ganymede" train --steps 3 "${training[@]}" --weights "$scratch/train.safetensors" --format json --quiet >"$scratch/train.json"
cmp "$scratch/step.safetensors" "$scratch/train.safetensors" || fail "other weights than the program's"
python3 - "$scratch/step.json" "$scratch/train.json" <<'PYTHON' || fail "other losses than the program's"
import json, sys
step, train = (json.load(open(path))["history"] for path in sys.argv[1:])
assert step and step == [{name: entry[name] for name in step[0]} for entry in train], (step, train)
PYTHON
