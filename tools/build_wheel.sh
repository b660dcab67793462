#!/usr/bin/env bash
# Builds a wheel of the Python package that carries the program:
#
#   tools/build_wheel.sh [-o FOLDER] [BUILD]      writes FOLDER/ganymede-VERSION-py3-none-linux_ARCH.whl
#
# BUILD (build/release) is a finished build; its modules for MPI and CUDA go along. FOLDER is build/wheels by default.
# The wheel is of this machine's kind (linux_x86_64) and not manylinux: it wants the shared libraries of the system that
# the program was built on, and those that are missing there are named by `ldd`. It needs cmake, and pip, which fetches
# scikit-build-core.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
folder=$root/build/wheels build=$root/build/release
while [[ $# -gt 0 ]]; do
  case $1 in
    -o) folder=${2:?"build_wheel.sh: -o needs a folder"}; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "build_wheel.sh: unknown option '$1', expected -o FOLDER" >&2; exit 2 ;;
    *) build=$1; shift ;;
  esac
done
[[ -x $build/bin/ganymede ]] ||
  { echo "build_wheel.sh: there is no $build/bin/ganymede; build it first: cmake --build --preset release" >&2; exit 2; }
build=$(readlink -f "$build")
mkdir -p "$folder"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root/python" "$work/source"
# What `cmake --install` writes, with licences as all of its documentation.
install -D --strip "$build/bin/ganymede" "$work/prefix/bin/ganymede"
for module in "$build"/lib/ganymede/*.so; do
  [[ ! -e $module ]] || install -D --strip "$module" "$work/prefix/lib/ganymede/$(basename "$module")"
done
install -D -m 644 "$root"/LICENSE "$root"/packaging/copyright "$root"/report/page/echarts/NOTICE \
  --target-directory="$work/prefix/share/doc/ganymede"

arch=$(uname -m)
cd "$work"
"${PYTHON:-python3}" -m pip wheel --quiet --no-deps --wheel-dir "$work/wheels" "$work/source" \
  --config-settings=wheel.cmake=true --config-settings=cmake.define.GANYMEDE_PREFIX="$work/prefix" \
  --config-settings=wheel.platlib=true --config-settings=wheel.tags="py3-none-linux_$arch"
for wheel in "$work"/wheels/*.whl; do
  mv "$wheel" "$folder"
  echo "$folder/$(basename "$wheel")"
done
