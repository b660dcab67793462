#!/usr/bin/env bash
# Looks for mistakes that neither the compiler's warnings nor the tests see; docs/reliability.md says what was found so far.
#
#   tools/analyse.sh cppcheck [FILE...]   cppcheck on the code that reads files and talks to others; a minute
#   tools/analyse.sh analyzer             g++ -fanalyzer on what is written like C: files, processes, sockets; some minutes
#   tools/analyse.sh threads              ThreadSanitizer on the tests of kernel and serve; builds build/tsan, half an hour
#   tools/analyse.sh valgrind             Valgrind's memcheck on training steps of the release build; some minutes
#   tools/analyse.sh all                  all of them: once a release
#   tools/analyse.sh changed [COMMIT]     cppcheck and clang-tidy on what has changed since COMMIT, else within the day before the
#                                         last commit: what CI runs. clang-tidy takes up to a minute for a file, so that it sees
#                                         the four .cpp with the most changed lines; `tools/lint.sh tidy` sees all
#
# Needs Debian's cppcheck and valgrind: tools/install_packages.sh build analysis; `changed` needs lint too
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

# Folders whose code reads files of others or talks to other programs.
readonly readers=(common traces platforms serve exports kernel)
# What these checks say of code that is right is suppressed here, each with its reason:
# - syntaxError, unknownMacro, internalAstError: cppcheck 2.10 does not understand all of C++20.
# - containerOutOfBounds, derefInvalidIterator, invalidFunctionArg: it follows paths that an earlier check excludes.
# - danglingTemporaryLifetime: it takes a std::string_view of a string_view for one of a temporary.
# - uninitMemberVar: members that a caller fills, as those of Bf16.
# - constStatement, ignoredReturnValue: expressions of Eigen and of [[nodiscard]] templates.
readonly suppressed=(internalAstError missingIncludeSystem unknownMacro syntaxError containerOutOfBounds derefInvalidIterator
  invalidFunctionArg danglingTemporaryLifetime uninitMemberVar constStatement ignoredReturnValue)

run_cppcheck() {
  local files=("$@")
  [[ $# -gt 0 ]] || files=("${readers[@]}")
  cppcheck -q --std=c++20 --language=c++ --enable=warning,performance,portability --inline-suppr -I. --error-exitcode=1 \
    "${suppressed[@]/#/--suppress=}" --template='{file}:{line}: {severity}: {id}: {message}' "${files[@]}"
}

# The analyzer of g++ 12 knows C only: it takes `new` for a function that may return a null pointer, does not see what constructors
# initialise, and takes what a std::function owns for a leak. What it says of that, and of the standard library's own code, is left out.
readonly not_in_cpp=(-Wno-analyzer-use-of-uninitialized-value -Wno-analyzer-possible-null-dereference -Wno-analyzer-null-dereference
  -Wno-analyzer-malloc-leak)
run_analyzer() {
  cmake --preset separate >/dev/null
  local database=build/separate/compile_commands.json failed=0 file command said
  for file in common/file.cpp common/process.cpp common/row_file.cpp kernel/checkpoint.cpp kernel/data/idx.cpp kernel/data/picture.cpp \
    serve/command_run.cpp serve/doorkeeper.cpp serve/timed_server.cpp serve/job_store.cpp sim/run/policy_process.cpp; do
    command=$(python3 - "$database" "$file" <<'PYTHON'
import json, sys
for entry in json.load(open(sys.argv[1])):
    if entry["file"].endswith("/" + sys.argv[2]):
        print(entry["command"].split(" -o ")[0])
        break
PYTHON
    )
    said=$(cd build/separate; $command -fanalyzer "${not_in_cpp[@]}" -Wno-error -c "../../$file" -o /dev/null 2>&1 | grep -E "^[^ ]*/$file:.*\[-Wanalyzer" || true)
    [[ -z $said ]] || { echo "$said"; failed=1; }
  done
  return "$failed"
}

run_threads() {
  cmake -S . -B build/tsan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_UNITY_BUILD=ON -DGANYMEDE_BENCH=OFF \
    -DGANYMEDE_CUDA=OFF -DGANYMEDE_THREAD_SANITIZER=ON >/dev/null
  cmake --build build/tsan --target kernel_test serve_test
  # setarch: the sanitizer of g++ 12 does not know the address space of recent kernels.
  for name in kernel serve; do
    TSAN_OPTIONS=halt_on_error=1 setarch -R "build/tsan/bin/${name}_test" \
      --gtest_filter='*Parallel*:*ThreadPool*:*Loader*:*Reducer*:*Trainer*:*Jobs*:Run.*:*TimedServer*:Bounds.*:Upload*:-*Quality*'
  done
}

run_valgrind() {
  local out
  out=$(mktemp -d)
  for model in mlp-gan dcgan-28; do  # with AVX2: Valgrind 3.19 hides AVX-512 from the program
    valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
      build/release/bin/ganymede train --model "$model" --steps 2 --batch 4 --threads 2 --checkpoint "$out/$model"
  done
  rm -rf "$out"
}

readonly most_tidied=4
run_changed() {
  local since
  since=$(tools/changed_since.sh "$@") || return 2
  [[ -n $since ]] || { echo "analyse.sh: no commit of the day before is known here: nothing to compare with" >&2; return 0; }
  local all=() some=() name file rows
  rows=$(git diff --numstat --diff-filter=d --no-renames "$since" -- '*.cpp')
  mapfile -t all < <(sort -k1,1nr <<<"$rows" | cut -f3 | grep .)
  for file in "${all[@]}"; do
    for name in "${readers[@]}"; do [[ $file != "$name"/* ]] || some+=("$file"); done
  done
  echo "${#all[@]} .cpp have changed since $since: cppcheck looks at ${#some[@]}, clang-tidy at up to $most_tidied"
  [[ ${#some[@]} -eq 0 ]] || run_cppcheck -j "$(nproc)" "${some[@]}"
  [[ ${#all[@]} -eq 0 ]] || tools/lint.sh tidy "${all[@]:0:$most_tidied}"
}

case ${1:-} in
  changed) run_changed "${@:2}" ;;
  cppcheck) run_cppcheck "${@:2}" ;;
  analyzer) run_analyzer ;;
  threads) run_threads ;;
  valgrind) run_valgrind ;;
  all) run_cppcheck && run_analyzer && run_valgrind && run_threads ;;
  *)
    echo "usage: tools/analyse.sh cppcheck [FILE...] | analyzer | threads | valgrind | all | changed [COMMIT]" >&2
    exit 2
    ;;
esac
