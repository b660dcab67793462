#!/usr/bin/env bash
# Builds the kernel on a machine with a GPU, runs the tests of the GPU backend, and measures training steps. Needs
# bundle/ from tools/gpu_bundle.sh.
#
#   tools/gpu_check.sh [FOLDER]     writes tests.log, steps.jsonl and traces into FOLDER (default: build/gpu)
#
# CUDA's libraries may be NVIDIA's packages, or Python wheels that python3 finds.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
readonly results=${1:-build/gpu}
mkdir -p "$results"

wheels=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
bundled=$PWD/bundle/usr
cmake -S . -B build/kernel -G Ninja -DCMAKE_BUILD_TYPE=Release -DGANYMEDE_KERNEL_ONLY=ON -DGANYMEDE_WERROR=OFF \
      -DCMAKE_PREFIX_PATH="$bundled" -DGANYMEDE_NVIDIA_WHEELS="$wheels" >"$results/configure.log" 2>&1 || { cat "$results/configure.log"; exit 1; }
grep 'GPU backend' "$results/configure.log"
cmake --build build/kernel 2>&1 | tail -n 3
export LD_LIBRARY_PATH=$bundled/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-}

build/kernel/bin/kernel_test --gtest_filter='*uda*:*Gpu*' --gtest_brief=1 2>&1 | tee "$results/tests.log" | tail -n 40 || true
for run in "mlp-gan 64" "mlp-gan 512" "dcgan-32 64" "dcgan-64 128"; do
  read -r model batch <<<"$run"
  for precision in fp32 tf32 bf16; do
    build/kernel/bin/kernel_step --model "$model" --batch "$batch" --backend cuda --precision "$precision" || true
  done
  build/kernel/bin/kernel_step --model "$model" --batch "$batch" --backend cuda --no-graph || true
done | tee "$results/steps.jsonl"
for run in "mlp-gan 64,128" "dcgan-64 128"; do
  read -r model batches <<<"$run"
  build/kernel/bin/kernel_step --model "$model" --batch "$batches" --backend cuda --trace-to "$results/trace" >/dev/null || true
done
ls -l "$results"
