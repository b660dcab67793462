#!/bin/bash -eu
# Builds the fuzz targets as OSS-Fuzz does, which calls it with SRC, WORK, OUT, CXX, CXXFLAGS and LIB_FUZZING_ENGINE. Without them it
# builds with clang, AddressSanitizer and libFuzzer, into build/oss-fuzz/out:
#
#   tests/fuzz/oss-fuzz/build.sh
#   build/oss-fuzz/out/fuzz_scenario -dict=build/oss-fuzz/out/fuzz_scenario.dict -max_total_time=60
#
# Each target is a link to one program, with its corpus (tests/fuzz/corpus) and, where its documents have a schema, the schema's words.
source=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../.." && pwd)
: "${WORK:=$source/build/oss-fuzz}" "${OUT:=$source/build/oss-fuzz/out}" "${CC:=clang}" "${CXX:=clang++}" "${LIB_FUZZING_ENGINE:=-fsanitize=fuzzer}"
: "${CXXFLAGS:=-O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address,fuzzer-no-link}" "${CFLAGS:=$CXXFLAGS}"
export CC CXX CFLAGS
export CXXFLAGS=${CXXFLAGS//-stdlib=libc++/}  # the libraries of the distribution are built with GNU's

# shellcheck disable=SC2016  # ORIGIN is the loader's.
cmake -S "$source" -B "$WORK/ganymede" -G Ninja -DGANYMEDE_FUZZ=ON -DGANYMEDE_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DGANYMEDE_WERROR=OFF \
  -DGANYMEDE_CUDA=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 -DCMAKE_EXE_LINKER_FLAGS='-Wl,-rpath,$ORIGIN/lib'
cmake --build "$WORK/ganymede" --target fuzz

mkdir -p "$OUT/lib"
cp "$WORK/ganymede/bin/fuzz" "$OUT/fuzz_step-trace"
# Where it runs there are the C library's files and no others.
ldd "$OUT/fuzz_step-trace" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|libpthread|librt|libresolv)\.so/ { print $3 }' | xargs -r cp -L -t "$OUT/lib"
"$OUT/fuzz_step-trace" --targets | cut -f1 | while read -r name; do
  [[ $name != command ]] || continue  # it starts processes, and loads SimGrid's module from the folders of an installed program
  [[ $name == step-trace ]] || ln -f "$OUT/fuzz_step-trace" "$OUT/fuzz_$name"
  (cd "$source/tests/fuzz/corpus/$name" && rm -f "$OUT/fuzz_${name}_seed_corpus.zip" && python3 -m zipfile -c "$OUT/fuzz_${name}_seed_corpus.zip" ./*)
  "$OUT/fuzz_step-trace" --dictionary "$name" >"$OUT/fuzz_$name.dict"
  [[ -s $OUT/fuzz_$name.dict ]] || rm "$OUT/fuzz_$name.dict"
  printf '[libfuzzer]\nmax_len = 20000\ntimeout = 10\nrss_limit_mb = 2048\n' >"$OUT/fuzz_$name.options"
done
