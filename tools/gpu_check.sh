#!/usr/bin/env bash
# What to do with a GPU in three runs of less than ten minutes each. Needs the folder of tools/gpu_bundle.sh.
#
#   tools/gpu_check.sh tests  [FOLDER]   versions, a smoke run, each GPU test by itself, sanitizers, steps of each model
#   tools/gpu_check.sh torch  [FOLDER]   PyTorch's steps in turn with ours
#   tools/gpu_check.sh traces [FOLDER]   step traces at six batch sizes, limits of the device, its longest kernels
#   tools/gpu_check.sh short  [FOLDER]   the steps of all three on a GPU, with less of each: a test of this script
#   tools/gpu_check.sh dry    [FOLDER]   the same on the CPU
#
# Each step writes NAME.log into the folder (default: build/gpu) as soon as it begins; one that fails or takes too long
# does not stop the rest. summary.txt says of each how it ended, and results.tar.gz holds everything. CUDA's libraries
# may be NVIDIA's packages, or Python wheels that python3 finds. GANYMEDE_PROGRAMS names the folder of the programs, if it
# is not that of the bundle.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit
readonly run=${1:-} results=${2:-build/gpu}
readonly bundle=$PWD/bundle budget=570 # seconds of a run
backend=cuda precisions='fp32 tf32 bf16' seconds=2 batches=16,32,64,128,256,512 parallel=4 less=no tests='*GpuSteps*:*/cuda'
case $run in
  tests | torch | traces) ;;
  short) seconds=0 batches=2,3 parallel=1 less=yes tests='*GpuSteps*mlp_gan*:FusedGpu*:*BatchNorm*/cuda' ;;
  dry) backend=cpu precisions=fp32 seconds=0 batches=2,3 parallel=1 less=yes tests='CapturedStep.*:LaunchShape.*:Copies.*' ;;
  *) echo "gpu_check.sh: found \"$run\", expected tests, torch, traces, short or dry" >&2; exit 2 ;;
esac
readonly backend precisions seconds batches parallel less tests
mkdir -p "$results"
: >"$results/summary.txt"

note() { printf '%-8s %5s s  %s\n' "$1" "$2" "$3" | tee -a "$results/summary.txt"; }

# step NAME LIMIT COMMAND...: runs a command for at most LIMIT seconds.
step() {
  local name=$1 limit=$2 status=0 begin=$SECONDS left=$((budget - SECONDS)) log=$results/$1.log
  shift 2
  if ! command -v "$1" >/dev/null; then note skipped 0 "$name: there is no $1"; return; fi
  if ((left < 5)); then note skipped 0 "$name: no time was left"; return; fi
  timeout --kill-after=5 $((limit < left ? limit : left)) "$@" >"$log" 2>&1 </dev/null || status=$?
  case $status in
    0) note ok $((SECONDS - begin)) "$name" ;;
    124 | 137) note TIMEOUT $((SECONDS - begin)) "$name: $(tail -n 1 "$log" | cut -c 1-160)" ;;
    *) note FAILED $((SECONDS - begin)) "$name: exit code $status: $(grep -a . "$log" | tail -n 1 | cut -c 1-160)" ;;
  esac
  return $status
}

starts() { "$1/kernel_test" --gtest_list_tests >/dev/null 2>&1 && "$1/kernel_step" --help >/dev/null 2>&1; }

build_here() {
  cmake -S . -B build/kernel -G Ninja -DCMAKE_BUILD_TYPE=Release -DGANYMEDE_KERNEL_ONLY=ON -DGANYMEDE_WERROR=OFF -DGANYMEDE_CUDA=ON \
        -DCMAKE_PREFIX_PATH="$bundle/usr" -DGANYMEDE_NVIDIA_WHEELS="$wheels" -DGANYMEDE_CUDA_ARCHITECTURES=native &&
    cmake --build build/kernel --target kernel_test kernel_step ganymede_cuda
}

versions() {
  uname -a; ldd --version | head -n 1; ldd "$programs/kernel_test" "$programs/../lib/ganymede/libganymede_cuda.so"
  for tool in nvcc cmake ninja ncu compute-sanitizer; do command -v $tool && $tool --version; done
  python3 -c 'import torch; print(torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), torch.cuda.nccl.version())'
  nvidia-smi -q
  true # none of them is needed
}

# Names of tests that run on the device; on the CPU a few of the hosted ones.
list_tests() {
  "$programs/kernel_test" --gtest_list_tests --gtest_filter="$tests" 2>/dev/null |
    awk '/^[^ ]/ {suite = $1} /^ / {print suite $1}' | sed 's/#.*//'
}

# Each test in a process of its own, so that one which hangs or breaks the device's context takes none with it.
one_test() {
  local log status=0
  log=$results/tests/$(tr '/' '-' <<<"$1").log
  timeout --kill-after=5 30 "$programs/kernel_test" --gtest_filter="$1" >"$log" 2>&1 </dev/null || status=$?
  if grep -q 'SKIPPED' "$log"; then echo "skipped $1"; elif ((status == 0)); then echo "ok $1"; else echo "FAILED ($status) $1"; fi
}
all_tests() {
  mkdir -p "$results/tests"
  list_tests | xargs -P "$parallel" -I {} bash -c 'one_test {}' | tee "$results/tests.txt"
  ! grep -q FAILED "$results/tests.txt" && grep -q '^ok' "$results/tests.txt"
}
export -f one_test
export results

time_step() { # MODEL BATCH OPTION...
  local model=$1 batch=$2
  shift 2
  "$programs/kernel_step" --model "$model" --batch "$batch" --backend "$backend" --min-time "$seconds" "$@" | tee -a "$results/steps.jsonl"
  return "${PIPESTATUS[0]}"
}
export -f time_step
export backend seconds

models() { sed -n 's/^  ROW(\([a-z0-9_]*\)).*/\1/p' kernel/models/models.cpp | tr '_' '-' | if [[ $less == yes ]]; then head -n 2; else cat; fi; }
batch_of() { if [[ $less == yes ]]; then echo 2; elif [[ $1 == progressive* ]]; then echo 32; elif [[ $1 == mlp-gan ]]; then echo 64; else echo 128; fi; }

run_tests() {
  step smoke-eager 60 "$programs/kernel_step" --model mlp-gan --batch 8 --backend "$backend" --no-graph --min-time 0
  step smoke-graph 60 "$programs/kernel_step" --model mlp-gan --batch 8 --backend "$backend" --min-time 0
  step tests 240 bash -c "$(declare -f list_tests all_tests); tests=$(printf %q "$tests") parallel=$parallel; all_tests"
  local check
  for tool in memcheck racecheck; do
    check=(env)
    if [[ $backend == cuda ]]; then check=(compute-sanitizer --error-exitcode 9 --tool "$tool"); fi
    step "$tool" 50 "${check[@]}" "$programs/kernel_test" --gtest_filter='*Gpu*ReplayedAre*mlp_gan*:*BatchNormAlone/cuda'
  done
  for model in $(models); do
    for precision in $precisions; do
      step "step-$model-$precision" 30 bash -c "time_step $model $(batch_of "$model") --precision $precision"
    done
    step "step-$model-eager" 30 bash -c "time_step $model $(batch_of "$model") --no-graph"
  done
}

run_torch() {
  local bench=$bundle/torch_gan_bench.py pair model
  if [[ $less == yes ]]; then note skipped 0 "torch: it is left out of a $run run"; return; fi
  for model in dcgan-28 dcgan-64; do
    step "losses-$model" 60 python3 tools/check_against_pytorch.py --program "$programs/kernel_step" --backend cuda --model "$model"
  done
  if [[ ! -f $bench ]]; then note skipped 0 "torch: the bundle has no torch_gan_bench.py (tools/gpu_bundle.sh --torch-bench FILE)"; return; fi
  for pair in dcgan64:128 mlp:64; do
    step "torch-${pair/:/-}" 270 python3 bench/compare_with_pytorch.py --torch-bench "$bench" --torch-python "$(command -v python3)" \
         --kernel-step "$programs/kernel_step" --device cuda --min-time 1 --precision bf16,tf32,fp32 --model "$pair"
  done
}

# How far the first algorithm of cuDNN's heuristics is from the fastest that repeats its bits, for every pass of every layer.
algorithms() {
  local model precision status=0
  for model in $(models); do
    if [[ $model == mlp-gan ]]; then continue; fi
    for precision in $precisions; do
      XDG_CACHE_HOME=$(realpath "$results") "$programs/kernel_step" --model "$model" --batch "$(batch_of "$model")" --backend cuda \
        --precision "$precision" --time-algorithms --losses 1 || status=$?
    done
  done
  python3 - "$results/ganymede/convolutions.json" <<'PYTHON' || status=$?
import json, sys
for layer, timed in json.load(open(sys.argv[1]))["choices"].items():
    best = min(timed, key=lambda one: (not one["repeats"], one["us"]))
    print(f"{layer}: {len(timed)} algorithms; first {timed[0]['us']:.1f} us, taken {best['us']:.1f} us, "
          f"{timed[0]['us'] / best['us']:.2f} times; number {best['algorithm']}, math {best['math']}")
PYTHON
  return $status
}

# The five kernels that take longest in some steps, by ncu, with details, or by nsys; without both the five longest phases of the
# recorded trace.
profile() {
  local program=("$programs/kernel_step" --model dcgan-64 --batch "$batch" --backend cuda --no-graph --min-time 0) by
  if command -v ncu >/dev/null; then
    by=ncu
    ncu --clock-control none --metrics gpu__time_duration.sum --launch-count 400 --print-units base --csv "${program[@]}" >"$results/kernels.csv" || return
  elif command -v nsys >/dev/null; then
    by=nsys
    nsys profile --force-overwrite true --output "$results/steps" "${program[@]}" || return
    nsys stats --report cuda_gpu_kern_sum --format csv "$results/steps.nsys-rep" >"$results/kernels.csv" || return
  else
    by=trace
  fi
  python3 - "$by" "$results" <<'PYTHON' | tee "$results/longest.txt"
import collections, csv, json, pathlib, sys
by, results = sys.argv[1], pathlib.Path(sys.argv[2])
total = collections.Counter()
if by == "trace":
    batch = json.loads((results / "dcgan-64.json").read_text())["batches"][-1]
    for phase in batch["phases"]:
        total[phase["name"]] = 1e9 * sorted(phase["seconds"])[len(phase["seconds"]) // 2]
else:
    named = {"ncu": ("Kernel Name", "Metric Value"), "nsys": ("Name", "Total Time (ns)")}[by]
    rows = list(csv.reader((results / "kernels.csv").read_text().splitlines()))
    rows = rows[next(i for i, row in enumerate(rows) if named[0] in row):]
    name, value = (rows[0].index(column) for column in named)
    for row in rows[1:]:
        if len(row) == len(rows[0]):
            total[row[name]] += float(row[value].replace(",", ""))
print(f"the longest by {by}, in ns")
for kernel, time in total.most_common(5):
    print(f"{time:14.0f} {kernel}")
PYTHON
  [[ $by != ncu ]] || ncu --clock-control none --section SpeedOfLight --section MemoryWorkloadAnalysis --section LaunchStats \
    --section Occupancy --launch-skip 200 --launch-count 60 "${program[@]}"
}

run_traces() {
  step limits 60 "$programs/kernel_step" --backend "$backend" --limits
  if [[ $backend == cuda ]]; then
    step cudnn-device 30 python3 tools/cudnn_device.py "$results/cudnn-device.json"
    step algorithms 170 bash -c "$(declare -f algorithms models batch_of); less=$less precisions='$precisions'; algorithms"
  fi
  for model in $(models); do
    step "trace-$model" 150 "$programs/kernel_step" --model "$model" --batch "$batches" --backend "$backend" --min-time "$seconds" \
         --record "$results/$model.json"
  done
  if [[ $backend == cuda ]]; then step profile 120 bash -c "$(declare -f profile); batch=$(batch_of dcgan-64) profile"; fi
}

wheels=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
libraries=$bundle/usr/lib/x86_64-linux-gnu
for wheel in cudnn nccl cu13 cublas cuda_runtime; do libraries+=:$wheels/$wheel/lib; done
export PYTHONUNBUFFERED=1
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

programs=${GANYMEDE_PROGRAMS:-$bundle/bin}
if ! starts "$programs"; then
  note FAILED 0 "programs: those in $programs do not start; building here"
  step build 420 bash -c "$(declare -f build_here); bundle=$bundle wheels=$wheels build_here"
  programs=$PWD/build/kernel/bin
fi
readonly programs
export programs
step versions 30 bash -c "$(declare -f versions); versions"
case $run in
  tests) run_tests ;;
  torch) run_torch ;;
  traces) run_traces ;;
  short | dry) run_tests; run_torch; run_traces ;;
esac
archive=$(mktemp)
tar -czf "$archive" --exclude=results.tar.gz -C "$results" . && mv "$archive" "$results/results.tar.gz"
if grep -q '^\(FAILED\|TIMEOUT\)' "$results/summary.txt"; then
  echo "to mend: $(grep -c '^\(FAILED\|TIMEOUT\)' "$results/summary.txt"); see summary.txt and the logs"
  exit 1
fi
