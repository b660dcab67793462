#!/usr/bin/env bash
# Reads where the loader looks for the libraries of every program and module below a folder (RPATH, RUNPATH), and fails where
# that depends on the current directory: an empty or a relative element. $ORIGIN, the file's own folder, is allowed.
#
#   tests/install/check_search_paths.sh COMPILER FOLDER     first tries itself on libraries that it makes with the compiler
set -euo pipefail
readonly compiler=$1 folder=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# "FILE: PATHS" for each file below $1 with an element that depends on the current directory; "read N" last.
bad_paths() {
  local file paths element read=0
  while IFS= read -r -d '' file; do
    [[ $(head -c 4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
    ((++read))
    while IFS= read -r paths; do
      # A colon more, so that an empty last element is one.
      while IFS= read -r -d : element; do
        [[ $element == /* || $element == '$ORIGIN' || $element == '$ORIGIN/'* ]] || { echo "$file: [$paths]"; break; }
      done <<<"$paths:"
    done < <(readelf -d "$file" 2>/dev/null | sed -n 's/.*R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p')
  done < <(find "$1" -type f \( -perm -u+x -o -name '*.so*' \) -print0)
  echo "read $read"
}

n=0
for paths in /usr/lib: : :/usr/lib lib /usr/lib:lib '/usr/lib::/lib' /usr/lib '$ORIGIN/../lib:/usr/lib'; do
  n=$((n + 1))
  echo 'int x;' | "$compiler" -shared -fPIC -x c++ - -Wl,-rpath,"$paths" -o "$scratch/$n.so"
done
# The first six are bad, the last two are not.
found=$(bad_paths "$scratch" | grep -c ': \[') || true
[[ $found == 6 ]] || { echo "check_search_paths.sh: found $found bad ones of its own, expected 6:" >&2; bad_paths "$scratch" >&2; exit 1; }

found=$(bad_paths "$folder")
[[ $found != "read 0" ]] || { echo "check_search_paths.sh: nothing that was built below $folder" >&2; exit 1; }
[[ $found == "read "* ]] || { echo "check_search_paths.sh: the current directory's libraries would run:" >&2; echo "$found" >&2; exit 1; }
