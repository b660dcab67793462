#!/bin/sh
# Runs a compiler. What ptxas (-Xptxas -v) says of the kernels' registers and memory goes into OBJECT.resources, for
# tests/kernel/check_kernel_resources.py, and the rest is printed.
#
#   keep_resources.sh COMPILER ARGUMENT...
object= before=
for argument; do
  [ "$before" = -o ] && object=$argument
  before=$argument
done
"$@" >"$object.said" 2>&1
status=$?
readonly info='^ptxas info\|^    [0-9]* bytes stack frame'
grep "$info" "$object.said" >"$object.resources"
grep -v "$info" "$object.said" >&2
rm "$object.said"
exit $status
