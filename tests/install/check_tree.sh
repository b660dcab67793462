#!/usr/bin/env bash
# Installs a build into a folder of its own, looks at what is there, moves it elsewhere, and runs the program from there:
#
#   tests/install/check_tree.sh CMAKE BUILD-FOLDER SOURCE-FOLDER
set -euo pipefail
readonly cmake=$1 build=$2 source=$3
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
complain() {
  echo "check_tree.sh: $*" >&2
  failed=1
}

"$cmake" --install "$build" --prefix "$scratch/first" >"$scratch/log" 2>&1 || {
  cat "$scratch/log" >&2
  exit 1
}
mv "$scratch/first" "$scratch/prefix"
cd "$scratch/prefix"

for file in bin/ganymede lib/ganymede/libganymede_simgrid.so share/bash-completion/completions/ganymede share/zsh/vendor-completions/_ganymede \
  share/fish/vendor_completions.d/ganymede.fish share/man/man1/ganymede.1.gz share/doc/ganymede/{README.md,LICENSE,copyright,ganymede.spdx.json} \
  share/doc/ganymede/docs/{commands.md,install.md} share/doc/ganymede/docs/schemas share/ganymede/studies/first-look.json; do
  [[ -e $file ]] || complain "$file is missing"
done
for module in "$build"/lib/ganymede/*.so; do
  [[ ! -e $module || -e lib/ganymede/${module##*/} ]] || complain "lib/ganymede/${module##*/} is missing"
done
grep -q '^GANYMEDE_SANITIZE:BOOL=ON' "$build/CMakeCache.txt" || "$here/check_hardening.sh" "${CXX:-c++}" . || complain "the files above are not hardened"
"$here/check_sbom.py" . || complain "ganymede.spdx.json is not as it should be"
"$here/check_search_paths.sh" "${CXX:-c++}" . || complain "the search paths above depend on the current directory"
# What is there and nobody asked for.
while IFS= read -r found; do
  complain "$found should not be installed"
done < <(find . -type f ! -path './bin/ganymede' ! -path './lib/ganymede/*.so' ! -path './share/*' -o -name 'CMakeLists.txt' -o -name '*.?pp')

# A page for each command that the program lists, and nothing of the machine that built it.
commands=$(bin/ganymede --help | sed -n '/^What to rent/,$s/^  \([a-z-]*\) .*/\1/p')
[[ -n $commands ]] || complain "the program lists no commands"
for command in $commands; do
  gzip -t "share/man/man1/ganymede-$command.1.gz" || complain "no page for $command"
done
! grep -rl -e "$build" -e "$source/" share || complain "the files above name the folders of the build"

# It runs with nothing beside it but what is installed.
bin/ganymede --version >/dev/null || complain "--version fails"
bin/ganymede sweep share/ganymede/studies/first-look.json --format csv -o "$scratch/runs.csv" || complain "a study fails"
bin/ganymede example scenario >"$scratch/scenario.json"
bin/ganymede simulate "$scratch/scenario.json" >/dev/null || complain "the example fails"
bin/ganymede allreduce --catalog aws --instance p3.16xlarge --scheme ring --bytes 1MiB --fidelity message >/dev/null ||
  complain "SimGrid's module fails"
# A module is found where it is installed: alone, it refuses for another reason than that there is none.
if [[ -e lib/ganymede/libganymede_mpi.so ]]; then
  said=$(OMPI_COMM_WORLD_SIZE=2 PMI_SIZE=2 timeout 60 bin/ganymede train --steps 1 2>&1 || true)
  [[ $said != *"the MPI module is not there"* ]] || complain "the installed MPI module is not found: $said"
fi
exit "$failed"
