#!/usr/bin/env bash
# Fuzzes the readers of foreign input (tests/fuzz) with libFuzzer, under AddressSanitizer and UndefinedBehaviorSanitizer.
#
#   tools/fuzz.sh                          each target for a minute
#   tools/fuzz.sh --seconds 10 scenario    these targets, each for so many seconds
#   tools/fuzz.sh --hours 8                all targets, together for so many hours
#   tools/fuzz.sh --seconds 0              only the coverage of what was found before
#   tools/fuzz.sh --changed                what CI runs: of the targets whose readers' files have changed within the day before the last
#                                          commit the four with the most changed lines, each for half a minute, two at a time, in the build
#                                          that ./test --asan has made: without libFuzzer, so that nothing guides the changes
#
# Prints for each target how many inputs were tried, how many of them were defects (a crash, an unexpected exception, more
# than 10 s or 2 GiB), and which share of the reader's lines the inputs have reached. Inputs that reach new code are kept in
# build/fuzz/found, defects in build/fuzz/defects; `build/fuzz/bin/fuzz FILE` with GANYMEDE_FUZZ_TARGET repeats one.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

seconds=60 hours=0 chosen=() changed=no
while [[ $# -gt 0 ]]; do
  case $1 in
    --seconds | --hours)
      [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "fuzz.sh: found '${2:-}' after $1, expected a whole number" >&2; exit 2; }
      [[ $1 == --hours ]] && hours=$2 || seconds=$2
      shift ;;
    --changed) changed=yes ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "fuzz.sh: unknown option '$1', expected --seconds, --hours or --changed" >&2; exit 2 ;;
    *) chosen+=("$1") ;;
  esac
  shift
done

readonly most_changed=4
fuzz_changed() {
  local program=$PWD/build/asan/bin/fuzz_replay since names seed folder
  [[ -x $program ]] || { echo "fuzz.sh: $program is not there: ./test --asan builds it" >&2; return 2; }
  since=$(tools/changed_since.sh)
  [[ -n $since ]] || { echo "fuzz.sh: no commit of the day before is known here: nothing to compare with" >&2; return 0; }
  # shellcheck disable=SC2016  # The words are awk's.
  mapfile -t names < <(
    awk -F'\t' 'NR == FNR { if ($1 + $2 > 0) lines[$3] = $1 + $2; next }
                { n = split($2, files, " "); sum = 0
                  for (i = 1; i <= n; ++i) sum += lines[files[i]]
                  if (sum > 0) print sum "\t" $1 }' \
      <(git diff --numstat --no-renames "$since") <("$program" --targets) | sort -k1,1nr | cut -f2 | head -"$most_changed")
  seed=$(git log -1 --format=%ct) folder=$PWD/build/asan/fuzz
  mkdir -p "$folder"
  echo "changed since $since: ${names[*]:-no reader}; GANYMEDE_FUZZ_SEED=$seed"
  [[ ${#names[@]} -eq 0 ]] ||
    printf '%s\n' "${names[@]}" | (cd "$folder" && GANYMEDE_FUZZ_SEED=$seed xargs -P 2 -n 1 "$program" "$OLDPWD/tests/fuzz/corpus" "$((seconds / 2))s")
}
if [[ $changed == yes ]]; then
  fuzz_changed
  exit
fi

tools/install_packages.sh build fuzz
cmake --preset fuzz >build/configure.log 2>&1 || { cat build/configure.log >&2; exit 1; }
cmake --build --preset fuzz

program=$PWD/build/fuzz/bin/fuzz found=$PWD/build/fuzz/found defects=$PWD/build/fuzz/defects
mkdir -p "$found" "$defects" build/fuzz/profiles
declare -A sources
while IFS=$'\t' read -r name files; do sources[$name]=$files; done < <("$program" --targets)
mapfile -t all < <("$program" --targets | cut -f1)
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${all[@]}")
for name in "${chosen[@]}"; do
  [[ -n ${sources[$name]:-} ]] || { echo "fuzz.sh: no target '$name'; there are ${all[*]}" >&2; exit 2; }
done
[[ $hours == 0 ]] || seconds=$(awk "BEGIN { print int($hours * 3600 / ${#chosen[@]}) }")

export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '%-18s %12s %8s %s\n' target inputs defects "lines of the reader that were run"
bad=0
for name in "${chosen[@]}"; do
  export GANYMEDE_FUZZ_TARGET=$name
  mkdir -p "$found/$name"
  row=0
  while IFS=$'\t' read -r corpus line; do
    row=$((row + 1))
    for file in tests/fuzz/corpus/"$corpus"/*; do { echo "$line"; cat "$file"; } >"$found/$name/borrowed-$row-${file##*/}"; done
  done < <("$program" --borrowed "$name")
  inputs=0 log=build/fuzz/$name.log
  if [[ $seconds != 0 ]]; then
    # Each defect ends libFuzzer, which starts again until the time is over.
    end=$((SECONDS + seconds)) tries=0
    : >"$log"
    while [[ $SECONDS -lt $end && $tries -lt 20 ]]; do
      (cd "$scratch" && LLVM_PROFILE_FILE=$scratch/unused.profraw nice "$program" -max_total_time=$((end - SECONDS)) -timeout=10 \
        -rss_limit_mb=2048 -max_len=20000 -print_final_stats=1 -verbosity=1 -artifact_prefix="$defects/$name-" \
        "$found/$name" "$OLDPWD/tests/fuzz/corpus/$name" >>"$OLDPWD/$log" 2>&1) && break || tries=$((tries + 1))
    done
    inputs=$(awk '/^stat::number_of_executed_units/ { n += $2 } END { print n + 0 }' "$log")
  fi
  profile=build/fuzz/profiles/$name
  (cd "$scratch" && LLVM_PROFILE_FILE=$OLDPWD/$profile.profraw "$program" -runs=0 -timeout=10 -max_len=20000 "$found/$name" \
    "$OLDPWD/tests/fuzz/corpus/$name" >"$scratch/log" 2>&1) || true
  lines="not counted"
  if command -v llvm-profdata >/dev/null && llvm-profdata merge -sparse "$profile.profraw" -o "$profile.profdata" 2>/dev/null; then
    # shellcheck disable=SC2086  # The sources are a list of words.
    lines=$(llvm-cov export -summary-only "$program" -instr-profile="$profile.profdata" ${sources[$name]} 2>/dev/null |
      sed -n 's/.*"totals":.*"lines":{"count":\([0-9]*\),"covered":\([0-9]*\),.*/\1 \2/p' |
      awk '{ printf "%.1f %% of %d", 100 * $2 / $1, $1 }')
  fi
  count=$(find "$defects" -name "$name-*" | wc -l)
  [[ $count == 0 ]] || bad=1
  printf '%-18s %12d %8d %s\n' "$name" "$inputs" "$count" "$lines"
done
exit $bad
