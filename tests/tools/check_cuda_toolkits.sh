#!/usr/bin/env bash
# Which toolkits cmake/cuda.cmake takes: too old ones are none, Python wheels have headers too, and GPUs are those that nvcc knows, or of
# those the ones that are here. A module that was asked for and cannot be built is an error.
#
#   tests/tools/check_cuda_toolkits.sh SOURCES CMAKE
set -euo pipefail
readonly sources=$1 cmake=$2
unset CUDAARCHS # which would choose GPUs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*"; cat "$scratch/log"; exit 1; }

printf 'cmake_minimum_required(VERSION 3.21)\nproject(probe LANGUAGES CXX)\ninclude(%s/cmake/cuda.cmake)\n' "$sources" \
  >"$scratch/CMakeLists.txt"
# A compiler of that version, which compiles nothing.
configure() { # VERSION OPTION...
  local toolkit=$scratch/toolkit-$1
  mkdir -p "$toolkit/bin"
  cat >"$toolkit/bin/nvcc" <<NVCC
#!/bin/sh
[ "\$1" = --version ] && echo "Cuda compilation tools, release $1, V$1.89" && exit 0
[ "\$1" = --list-gpu-arch ] && printf 'compute_%s\\n' ${known[$1]-} && exit 0
exit 1
NVCC
  chmod +x "$toolkit/bin/nvcc"
  "$cmake" -S "$scratch" -B "$scratch/build-$1" -DGANYMEDE_NVCC="$toolkit/bin/nvcc" "${@:2}" >"$scratch/log" 2>&1
}
asked() { # VERSION OPTION...
  ! configure "$1" -DGANYMEDE_CUDA=ON "${@:2}" || fail "a module that cannot be built is no error"
  grep -q '^ *GANYMEDE_CUDA is ON, but' "$scratch/log" || fail "it does not say what was asked for"
}

declare -A known=([12.8]='50 52 53 60 61 62 70 72 75 80 86 87 89 90 100 101 120' [13.0]='75 80 86 87 88 89 90 100 110 103 120 121')

asked 11.8
grep -q 'GPU backend: not built, .* is of CUDA 11.8, expected 12.0 or later' "$scratch/log" || fail "11.8 is taken"

wheels=$scratch/nvidia
mkdir -p "$wheels"/{cudnn,nccl,cu13}/{include,lib}
touch "$wheels"/cudnn/{include/cudnn.h,lib/libcudnn.so.9} "$wheels"/nccl/{include/nccl.h,lib/libnccl.so.2} \
      "$wheels"/cu13/{include/cublas_v2.h,lib/libcublas.so.13,lib/libcublasLt.so.13}
asked 13.0 -DGANYMEDE_NVIDIA_WHEELS="$wheels"
for part in CUDNN_HEADERS:cudnn/include NCCL_HEADERS:nccl/include CUBLAS_HEADERS:cu13/include; do
  grep -q "^GANYMEDE_${part%:*}:PATH=$wheels/${part#*:}\$" "$scratch/build-13.0/CMakeCache.txt" || fail "$part is not found"
done

built_for() { grep -q "GPU backend: not built for $1," "$scratch/log" || fail "found other GPUs than $1"; }
built_for '75-real;80-real;86-real;89-real;90-real;100-real;103-real;120'
# CUDA 12 knows Pascal (P100, P4) and Volta (V100), which CUDA 13 does not.
asked 12.8 -DGANYMEDE_NVIDIA_WHEELS="$wheels"
built_for '60-real;61-real;70-real;75-real;80-real;86-real;89-real;90-real;100-real;120'
asked 12.8 -DGANYMEDE_NVIDIA_WHEELS="$wheels" '-DGANYMEDE_CUDA_ARCHITECTURES=61-real;70-real'
built_for '61-real;70-real'

# GPUs that are here, as a program in the place of nvidia-smi says.
here() { # VERSION CAPABILITY...
  printf '#!/bin/sh\nprintf "%%s\\n" %s\n' "${*:2}" >"$scratch/nvidia-smi"
  chmod +x "$scratch/nvidia-smi"
  configure "$1" -DGANYMEDE_CUDA=AUTO -DGANYMEDE_CUDA_ARCHITECTURES= -DGANYMEDE_NVIDIA_SMI="$scratch/nvidia-smi" || fail "configuring"
}
here 13.0 9.0 9.0 8.6
built_for '90-real;86-real'
here 13.0 13.0
built_for '121-virtual'
here 13.0 6.1
grep -q 'not built, CUDA 13.0 no longer compiles for the GPU that is here, of generation 61$' "$scratch/log" || fail "it is built for a P4"
if [[ ! -e /dev/nvidia0 ]]; then
  printf '#!/bin/sh\necho "9.0 is no GPU"; exit 9\n' >"$scratch/nvidia-smi"
  configure 13.0 || fail "configuring without a GPU"
  grep -q 'not built, no NVIDIA GPU is here; -DGANYMEDE_CUDA=ON builds it all the same$' "$scratch/log" || fail "it is built without a GPU"
fi
configure 13.0 -DGANYMEDE_CUDA=OFF || fail "configuring without the backend"
if grep -q 'GPU backend' "$scratch/log"; then fail "OFF looks for CUDA"; fi
# A build folder from when ON, the default, meant AUTO.
configure 13.0 -DGANYMEDE_CUDA:BOOL=ON || fail "ON of an older build folder is an error"
