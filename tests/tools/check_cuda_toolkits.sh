#!/usr/bin/env bash
# Which toolkits cmake/cuda.cmake takes: too old ones are none, and Python wheels have headers too.
#
#   tests/tools/check_cuda_toolkits.sh SOURCES CMAKE
set -euo pipefail
readonly sources=$1 cmake=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*"; cat "$scratch/log"; exit 1; }

printf 'cmake_minimum_required(VERSION 3.21)\nproject(probe LANGUAGES CXX)\ninclude(%s/cmake/cuda.cmake)\n' "$sources" \
  >"$scratch/CMakeLists.txt"
# A compiler of that version, which compiles nothing.
configure() { # VERSION OPTION...
  local toolkit=$scratch/toolkit-$1
  mkdir -p "$toolkit/bin"
  printf '#!/bin/sh\n[ "$1" = --version ] && echo "Cuda compilation tools, release %s, V%s.89" && exit 0\nexit 1\n' "$1" "$1" >"$toolkit/bin/nvcc"
  chmod +x "$toolkit/bin/nvcc"
  "$cmake" -S "$scratch" -B "$scratch/build-$1" -DGANYMEDE_NVCC="$toolkit/bin/nvcc" "${@:2}" >"$scratch/log" 2>&1 || fail "configuring"
}

configure 11.8
grep -q 'GPU backend: not built, .* is of CUDA 11.8, expected 12.0 or later' "$scratch/log" || fail "11.8 is taken"

wheels=$scratch/nvidia
mkdir -p "$wheels"/{cudnn,nccl,cu13}/{include,lib}
touch "$wheels"/cudnn/{include/cudnn.h,lib/libcudnn.so.9} "$wheels"/nccl/{include/nccl.h,lib/libnccl.so.2} \
      "$wheels"/cu13/{include/cublas_v2.h,lib/libcublas.so.13,lib/libcublasLt.so.13}
configure 13.0 -DGANYMEDE_NVIDIA_WHEELS="$wheels"
for part in CUDNN_HEADERS:cudnn/include NCCL_HEADERS:nccl/include CUBLAS_HEADERS:cu13/include; do
  grep -q "^GANYMEDE_${part%:*}:PATH=$wheels/${part#*:}\$" "$scratch/build-13.0/CMakeCache.txt" || fail "$part is not found"
done
