#!/usr/bin/env bash
# Pages in a real browser: run.sh PROGRAM FOLDER report|serve [--screens FOLDER]. FOLDER keeps what is installed.
# 77: skipped, because Chromium, node or playwright-core cannot be had; the reason is said.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
program=$(readlink -f "$1")
folder=$2
pages=$3
shift 3

skip() { echo "skipped: $1" >&2; exit 77; }
chromium=${CHROMIUM:-$(command -v chromium || true)}
[[ -n $chromium ]] || skip "no chromium (tools/install_packages.sh browser installs it)"
command -v node >/dev/null || skip "no node"

# playwright-core, from npm as the lock file pins it, else out of the wheel of the same version, which carries it.
version=$(sed -n 's/.*"playwright-core": "\(.*\)".*/\1/p' "$here/package.json")
mkdir -p "$folder"
exec 9>"$folder/lock"  # the other pages' tests install it there too
flock 9
from_npm() {
  command -v npm >/dev/null || return 1
  cp "$here"/package.json "$here"/package-lock.json "$folder"
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000 >npm.log 2>&1)
}
from_wheel() {
  python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$folder/wheel" "playwright==$version" \
    >"$folder/pip.log" 2>&1 || return 1
  rm -rf "$folder/node_modules" && mkdir -p "$folder/node_modules"
  python3 -m zipfile -e "$folder"/wheel/playwright-"$version"-*.whl "$folder/wheel/files"
  cp -r "$folder/wheel/files/playwright/driver/package" "$folder/node_modules/playwright-core"
  rm -rf "$folder/wheel"
}
if [[ $(cat "$folder/installed-version" 2>/dev/null) != "$version" ]]; then
  from_npm || from_wheel || skip "playwright-core $version can be had neither from npm nor from PyPI"
  echo "$version" >"$folder/installed-version"
fi
# Modules are looked for beside the file that imports them.
cp "$here"/*.mjs "$folder"
exec 9>&-
exec node "$folder/${pages}_test.mjs" "$program" "$chromium" "$here/../.." "$@"
