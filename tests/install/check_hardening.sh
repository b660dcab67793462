#!/usr/bin/env bash
# Reads how every program and module below a folder was built, and fails where a mistake with memory would be easier to exploit than
# it must be: position-independent, relocations read-only and resolved at the start, stack not executable, functions
# with a guarded stack, and at least one function of the C library in its checking form in the program.
#
#   tests/install/check_hardening.sh COMPILER FOLDER     first tries itself on programs that it makes with the compiler
set -euo pipefail
readonly compiler=$1 folder=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What the file $1 lacks, one word a line.
lacks() {
  local header dynamic symbols
  header=$(readelf -hlW "$1") dynamic=$(readelf -dW "$1") symbols=$(readelf -sW --dyn-syms "$1")
  grep -q 'Type: *DYN' <<<"$header" || echo position-independence
  grep -q GNU_RELRO <<<"$header" || echo relro
  grep -qE 'BIND_NOW|Flags:.* NOW' <<<"$dynamic" || echo bind-now
  grep -qE 'GNU_STACK.* RW ' <<<"$header" || echo stack
  grep -q __stack_chk_fail <<<"$symbols" || echo stack-protector
  [[ $1 == *.so ]] || grep -qE '__[a-z]+_chk(@|$)' <<<"$symbols" || echo fortify
}

cat >"$scratch/try.cpp" <<'SOURCE'
#include <cstdio>
#include <cstring>
int main(int count, char** words) {
  char text[16];
  std::strcpy(text, words[count - 1]);
  return std::printf("%s\n", text) < 0;
}
SOURCE
good=(-O2 -fPIE -pie -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong "-Wl,-z,relro,-z,now")
"$compiler" "${good[@]}" "$scratch/try.cpp" -o "$scratch/good"
[[ -z $(lacks "$scratch/good") ]] || { echo "check_hardening.sh: a good program lacks: $(lacks "$scratch/good" | xargs)" >&2; exit 1; }
for way in "position-independence -fno-pie -no-pie" "relro -Wl,-z,norelro" "bind-now -Wl,-z,lazy" "stack -Wl,-z,execstack" \
  "stack-protector -fno-stack-protector" "fortify -U_FORTIFY_SOURCE"; do
  read -r what flags <<<"$way"
  # The flags are words.
  # shellcheck disable=SC2086
  "$compiler" "${good[@]}" $flags "$scratch/try.cpp" -o "$scratch/bad" 2>/dev/null
  grep -qx "$what" <<<"$(lacks "$scratch/bad")" || { echo "check_hardening.sh: does not see what $flags leaves out" >&2; exit 1; }
done

read=0 failed=0
while IFS= read -r -d '' file; do
  [[ $(head -c 4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
  read=$((read + 1))
  missing=$(lacks "$file" | xargs)
  [[ -z $missing ]] || { echo "check_hardening.sh: $file lacks: $missing" >&2; failed=1; }
done < <(find "$folder" -type f \( -perm -u+x -o -name '*.so*' \) -print0)
((read > 0)) || { echo "check_hardening.sh: nothing that was built below $folder" >&2; exit 1; }
exit "$failed"
