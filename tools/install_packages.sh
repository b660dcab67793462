#!/usr/bin/env bash
# Installs what is missing of the Debian 12 packages that Ganymede needs, by group:
#
#   tools/install_packages.sh build [test] [format] [lint] [analysis] [browser] [python] [schedulers] [package] [wheel] [fuzz]
#
# This is the only list of packages; quickstart, test and .ci/run call it. If nothing is missing, it does not use the
# network.
set -euo pipefail

declare -A groups=(
  # This includes the libraries of the tests, so that a later ./test rebuilds nothing.
  [build]="g++ cmake ninja-build mold pkg-config libsimgrid-dev libboost-dev libeigen3-dev nlohmann-json3-dev libcli11-dev libfmt-dev
           libpng-dev libturbojpeg0-dev zlib1g-dev libssl-dev libcpp-httplib-dev libyaml-cpp-dev libexpat1-dev libgtest-dev libgmock-dev librapidcheck-dev libvalijson-dev
           libopenmpi-dev openmpi-bin"
  # hypothesis is for the oracle of tests/reference, which is skipped without it.
  [test]="python3 python3-hypothesis"
  [format]="clang-format"
  [lint]="clang-format clang-tidy"
  [analysis]="cppcheck valgrind python3"
  # For tests that open pages in a browser; without it they are skipped.
  [browser]="chromium fonts-dejavu-core python3 python3-pip"
  # For tests of frames and pictures, of wheels, and of PyTorch's steps; without them these are skipped.
  [python]="python3 python3-pandas python3-matplotlib python3-venv python3-pip python3-torch"
  # What sweeps are started by in tests; without it they are skipped.
  [schedulers]="slurm-wlm munge parallel"
  # Programs that cpack runs to find the dependencies of a Debian package.
  [package]="dpkg-dev file"
  # What makes the virtual environment of tools/build_wheel.sh.
  [wheel]="python3 python3-venv"
  # libFuzzer and the sanitizers of clang, and what counts the lines that were run (tools/fuzz.sh).
  [fuzz]="clang libclang-rt-14-dev llvm"
)
# Debian's packages would conflict with a node that was installed in another way.
command -v node >/dev/null && command -v npm >/dev/null || groups[browser]+=" nodejs npm"

wanted=()
for group in "$@"; do
  if [[ -z ${groups[$group]:-} ]]; then
    echo "install_packages.sh: unknown group '$group', expected build, test, format, lint, analysis, browser, python, schedulers, package, wheel or fuzz" >&2
    exit 2
  fi
  # Each group is a list of words.
  # shellcheck disable=SC2206
  wanted+=(${groups[$group]})
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<MESSAGE
This script installs packages with apt-get, on Debian 12. On another system, install what these Debian packages contain
(SimGrid must be 3.32), then build with 'cmake --preset release && cmake --build --preset release':
  ${wanted[*]}
MESSAGE
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "All needed packages are installed."
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    printf 'Packages are missing and can only be installed by root. As root, run:\n  apt-get install --no-install-recommends %s\n' \
      "${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Prints nothing unless it fails; no package asks a question.
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >"$log" 2>&1; }
if ! { apt update && apt install --no-install-recommends "${missing[@]}"; }; then
  tail -n 20 "$log" >&2
  echo "Could not install: ${missing[*]} (Ganymede is built and tested on Debian 12; see above for apt-get's reason)" >&2
  exit 1
fi
