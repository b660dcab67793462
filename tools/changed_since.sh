#!/usr/bin/env bash
# Prints the commit that CI compares with: COMMIT if it is given, else the last one that is a day older than the newest. Prints nothing
# where no such commit is known, as in a shallow clone.
#
#   tools/changed_since.sh [COMMIT]
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

[[ $# -le 1 ]] || { echo "found '$2', expected one commit at most" >&2; exit 2; }
if [[ $# -eq 1 ]]; then
  git rev-parse --quiet --verify --end-of-options "$1^{commit}" || { echo "found '$1', expected a commit of this repository" >&2; exit 2; }
else
  git rev-list -1 --first-parent --before="$(($(git log -1 --format=%ct) - 86400))" HEAD 2>/dev/null || true
fi
