#!/usr/bin/env bash
# Gathers in a folder that git ignores what a GPU machine without our packages needs to run tools/gpu_check.sh: the
# programs built here, and the parts of Debian's packages (headers, CMake files, small libraries) with which they are
# built there if they do not start.
#
#   tools/gpu_bundle.sh [--build FOLDER] [--torch-bench FILE] [--to FOLDER]
#
# --build: where the programs were built (default: build/release), on a machine without a GPU with -DGANYMEDE_CUDA=ON;
# --torch-bench: the program that times PyTorch (see bench/compare_with_pytorch.py); --to: the folder to write (default:
# bundle). To build by hand on the GPU machine:
#
#   cmake -S . -B build/kernel -G Ninja -DCMAKE_BUILD_TYPE=Release -DGANYMEDE_KERNEL_ONLY=ON \
#         -DCMAKE_PREFIX_PATH=$PWD/bundle/usr && cmake --build build/kernel
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

build=build/release torch_bench='' bundle=bundle
while (($# > 0)); do
  case $1 in
    --build) build=$2 ;;
    --torch-bench) torch_bench=$2 ;;
    --to) bundle=$2 ;;
    *) echo "gpu_bundle.sh: found $1, expected --build, --torch-bench or --to" >&2; exit 2 ;;
  esac
  shift 2
done
readonly build torch_bench bundle limit_mib=48 # of 64 that travel with the sources

packages=(libfmt-dev libfmt9 nlohmann-json3-dev libeigen3-dev libpng-dev libpng16-16 libturbojpeg0-dev libturbojpeg0 zlib1g-dev zlib1g libcli11-dev
          libgtest-dev libgmock-dev)
rm -rf "$bundle"
for package in "${packages[@]}"; do
  if ! files=$(dpkg-query --listfiles "$package" 2>/dev/null); then
    echo "gpu_bundle.sh: the package $package is missing; run tools/install_packages.sh build test" >&2
    exit 1
  fi
  while IFS= read -r file; do
    case $file in
      */doc/* | */man/* | */lintian/*) continue ;;
      /lib/*) target=$bundle/usr$file ;;
      /usr/include/* | /usr/lib/* | /usr/share/cmake/* | /usr/share/eigen3/*) target=$bundle$file ;;
      *) continue ;;
    esac
    if [[ -f $file ]]; then
      mkdir -p "${target%/*}"
      cp -a "$file" "$target"
    fi
  done <<<"$files"
done

mkdir -p "$bundle/bin" "$bundle/lib/ganymede"
for program in kernel_test kernel_step; do
  if [[ -f $build/bin/$program ]]; then strip -o "$bundle/bin/$program" "$build/bin/$program"; fi
done
module=$build/lib/ganymede/libganymede_cuda.so
if [[ -f $module ]]; then
  strip -o "$bundle/lib/ganymede/${module##*/}" "$module"
else
  echo "gpu_bundle.sh: $build has no module for GPUs, so that nothing will run on one; cmake -DGANYMEDE_CUDA=ON builds it" >&2
fi
if [[ -n $torch_bench ]]; then cp "$torch_bench" "$bundle/torch_gan_bench.py"; fi

size_mib=$(du -sm "$bundle" | cut -f 1)
echo "$bundle: $size_mib MiB; programs: $(ls "$bundle/bin" "$bundle/lib/ganymede" | tr '\n' ' ')"
if ((size_mib > limit_mib)); then
  echo "gpu_bundle.sh: found $size_mib MiB, expected at most $limit_mib" >&2
  exit 1
fi
