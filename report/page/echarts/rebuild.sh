#!/usr/bin/env bash
# Makes echarts.bundle.js, which the report holds, from ECharts as the lock file names it. Only who changes the bundle needs npm.
#
#   report/page/echarts/rebuild.sh           writes the bundle, the licences and the notice
#   report/page/echarts/rebuild.sh --check   fails if the bundle in the repository is another; 77: npm or its packages cannot be had
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
mode=${1:-write}
[[ $mode == write || $mode == --check ]] || { echo "rebuild.sh: unknown option '$mode', expected --check" >&2; exit 2; }

unavailable() {
  echo "skipped: $1; the bundle in the repository is used as it is" >&2
  exit $([[ $mode == --check ]] && echo 77 || echo 1)
}
command -v npm >/dev/null || unavailable "npm is not installed"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/{package.json,package-lock.json,entry.js} "$work"
cd "$work"
# esbuild is a program: nothing needs to run at installation.
npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000 >npm.log 2>&1 || unavailable "npm's packages cannot be had"
node_modules/.bin/esbuild entry.js --bundle --minify --format=iife --global-name=echarts --target=es2020 --legal-comments=none \
  --log-level=warning --outfile=echarts.bundle.js
{ cat node_modules/echarts/LICENSE; printf '\n\n== zrender ==\n\n'; cat node_modules/zrender/LICENSE
  printf '\n\n== tslib ==\n\n'; cat node_modules/tslib/LICENSE.txt; } >LICENSE
cp node_modules/echarts/NOTICE NOTICE

if grep -nE 'eval\(|new Function|</script|https?://' echarts.bundle.js >/dev/null; then
  echo "rebuild.sh: the bundle has an address, eval or a script's end in it" >&2
  exit 1
fi
for file in echarts.bundle.js LICENSE NOTICE; do
  if [[ $mode == write ]]; then
    install -m 644 "$file" "$here/$file"
  elif ! cmp -s "$file" "$here/$file"; then
    echo "rebuild.sh: $file in the repository is not what the lock file makes; run report/page/echarts/rebuild.sh" >&2
    exit 1
  fi
done
[[ $mode == write ]] && ls -l "$here/echarts.bundle.js" || echo "the bundle is what the lock file makes"
