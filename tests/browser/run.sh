#!/usr/bin/env bash
# The pages in a real browser: run.sh PROGRAM FOLDER [--screens FOLDER]. FOLDER keeps what npm installs.
# 77: skipped, because Chromium, node or playwright-core cannot be had; the reason is said.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
program=$(readlink -f "$1")
folder=$2
shift 2

skip() { echo "skipped: $1" >&2; exit 77; }
chromium=${CHROMIUM:-$(command -v chromium || true)}
[[ -n $chromium ]] || skip "no chromium (tools/install_packages.sh browser installs it)"
command -v node >/dev/null || skip "no node"
command -v npm >/dev/null || skip "no npm"

mkdir -p "$folder"
if ! cmp -s "$here/package-lock.json" "$folder/installed-lock.json"; then
  cp "$here"/package.json "$here"/package-lock.json "$folder"
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000 >npm.log 2>&1) ||
    skip "playwright-core cannot be had from npm"
  cp "$here/package-lock.json" "$folder/installed-lock.json"
fi
# Modules are looked for beside the file that imports them.
cp "$here"/*.mjs "$folder"
node "$folder/report_test.mjs" "$program" "$chromium" "$here/../.." "$@"
exec node "$folder/serve_test.mjs" "$program" "$chromium" "$here/../.." "$@"
