#!/usr/bin/env bash
# Checks the sources without running the program: clang-format on every C++ file, clang-tidy on every .cpp.
#
#   tools/lint.sh format    fails if clang-format would change a file; 'tools/lint.sh format --fix' changes it
#   tools/lint.sh tidy      checks every .cpp; 'tools/lint.sh tidy FILE...' checks only these
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

# Lists the project's own files with this name: nothing that is built, written by a run, or hidden.
sources() {
  find . -mindepth 1 \( -path './build*' -o -path './out' -o -name '.*' \) -prune -o -type f -name "$1" -printf '%P\0' | sort -z
}

format() {
  local mode=(--dry-run -Werror)
  [[ ${1:-} == --fix ]] && mode=(-i)
  { sources '*.cpp' && sources '*.hpp' && sources '*.cu'; } | xargs -0 clang-format "${mode[@]}"
}

# A file that is in no target (a source of an optional backend) has no compile command and is left out.
tidy() {
  cmake --preset separate >/dev/null
  local database=build/separate/compile_commands.json
  { if [[ $# -gt 0 ]]; then printf '%s\0' "$@"; else sources '*.cpp'; fi; } | while IFS= read -r -d '' file; do
    if grep -qF "/$file\"" "$database"; then printf '%s\0' "$file"; fi
  done | xargs -0 -r -n 1 -P "$(nproc)" clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option -p build/separate \
    2> >(grep -v ' warnings\? generated' >&2)
}

case ${1:-} in
  format) format "${2:-}" ;;
  tidy) tidy "${@:2}" ;;
  *)
    echo "usage: tools/lint.sh format [--fix] | tidy [FILE...]" >&2
    exit 2
    ;;
esac
