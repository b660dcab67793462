#!/usr/bin/env bash
# What tools/gpu_bundle.sh gathers: headers that a compiler finds there and nowhere else, programs that start.
#
#   tests/tools/check_gpu_bundle.sh SOURCES BUILD COMPILER
set -euo pipefail
readonly sources=$1 build=$2 compiler=$3
command -v dpkg-query >/dev/null || { echo "skipped: no dpkg-query"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

"$sources/tools/gpu_bundle.sh" --build "$build" --to "$scratch/bundle"
readonly usr=$scratch/bundle/usr
if compgen -G "$usr/include/*-linux-gnu" >/dev/null; then fail "headers where no compiler looks"; fi
printf '#include <%s>\n' zlib.h png.h turbojpeg.h Eigen/Core fmt/format.h nlohmann/json.hpp CLI/CLI.hpp gmock/gmock.h >"$scratch/all.cpp"
"$compiler" -std=c++20 -M -isystem "$usr/include" -isystem "$usr/include/eigen3" "$scratch/all.cpp" >"$scratch/found"
# A header of the system that the bundle has too is of another version there.
while IFS= read -r header; do
  if [[ -f $usr/include/${header#/usr/include/} || -f $usr/include/${header#/usr/include/*-linux-gnu/} ]]; then
    fail "$header is read beside the bundle's"
  fi
done < <(tr -s ' \\' '\n' <"$scratch/found" | grep '^/usr/include/')
LD_LIBRARY_PATH=$usr/lib/x86_64-linux-gnu "$scratch/bundle/bin/kernel_step" --help >/dev/null || fail "kernel_step does not start"
[[ -f $scratch/bundle/bin/kernel_test ]] || fail "no kernel_test"
