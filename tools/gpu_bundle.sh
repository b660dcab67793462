#!/usr/bin/env bash
# Copies the parts of Debian's packages that the kernel needs (headers, CMake files, a few small libraries) into
# bundle/, which git ignores. With it the kernel builds on a GPU machine that has a compiler, CMake and CUDA, but none
# of these packages. First on a Debian machine:
#
#   tools/gpu_bundle.sh
#
# Then on the GPU machine, with bundle/ in the root of the sources:
#
#   cmake -S . -B build/kernel -G Ninja -DCMAKE_BUILD_TYPE=Release -DGANYMEDE_KERNEL_ONLY=ON \
#         -DCMAKE_PREFIX_PATH=$PWD/bundle/usr && cmake --build build/kernel
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

packages=(libfmt-dev libfmt9 nlohmann-json3-dev libeigen3-dev libpng-dev libpng16-16 libturbojpeg0-dev libturbojpeg0 zlib1g-dev zlib1g libcli11-dev
          libgtest-dev libgmock-dev)
rm -rf bundle
for package in "${packages[@]}"; do
  if ! files=$(dpkg-query --listfiles "$package" 2>/dev/null); then
    echo "gpu_bundle.sh: the package $package is missing; run tools/install_packages.sh build test" >&2
    exit 1
  fi
  while IFS= read -r file; do
    case $file in
      */doc/* | */man/* | */lintian/*) continue ;;
      /lib/*) target=bundle/usr$file ;;
      /usr/include/* | /usr/lib/* | /usr/share/cmake/* | /usr/share/eigen3/*) target=bundle$file ;;
      *) continue ;;
    esac
    if [[ -f $file ]]; then
      mkdir -p "${target%/*}"
      cp -a "$file" "$target"
    fi
  done <<<"$files"
done
du -sh bundle
