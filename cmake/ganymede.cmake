# Functions by which every folder of the project makes its library and its test program.
#
#   ganymede_library(sim/engine SOURCES a.cpp b.cpp DEPENDS common sim/collectives LINK fmt::fmt)
#
# makes the target ganymede::sim_engine. The target sees the headers of its own folder and of the folders in DEPENDS
# (and theirs), and no others: each target's include directory holds one symbolic link, to its own folder. An include
# that the design forbids therefore does not compile.

set(GANYMEDE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
                      -Wdouble-promotion -Wformat=2)
if(GANYMEDE_WERROR)
  list(APPEND GANYMEDE_WARNINGS -Werror)
endif()

add_library(ganymede_flags INTERFACE)
target_compile_features(ganymede_flags INTERFACE cxx_std_20)
target_compile_options(ganymede_flags INTERFACE ${GANYMEDE_WARNINGS})
# Results must be the same bytes on every machine, so the compiler must not contract to fused multiply-add. (Training in
# kernel/ops does not decide results; it turns contraction on again for itself.)
target_compile_options(ganymede_flags INTERFACE -ffp-contract=off)
# The compiler collects its garbage after 256 MiB in place of some 80, which is a tenth to a sixth of its time. (clang-tidy, which reads
# the options of files that are compiled one by one, does not know the option.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
  target_compile_options(ganymede_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=262144>")
endif()

# What makes a mistake with memory end the program instead of serving whoever sent the input: tests/install checks it on what is
# installed, docs/reliability.md says what it costs. The sanitizers see more, and fortified functions would hide it from them.
# Without optimisation glibc cannot fortify: GANYMEDE_UNOPTIMISED on a target says so.
add_library(ganymede_hardening INTERFACE)
if(NOT GANYMEDE_SANITIZE AND NOT GANYMEDE_THREAD_SANITIZER)
  set(hardening -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    list(APPEND hardening -fcf-protection)
  endif()
  set(fortified "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:GANYMEDE_UNOPTIMISED>>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>")
  target_compile_options(ganymede_hardening INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${hardening}>" "$<$<COMPILE_LANGUAGE:CXX>:${fortified}>")
  target_link_options(ganymede_hardening INTERFACE -Wl,-z,relro,-z,now)
endif()
target_link_libraries(ganymede_flags INTERFACE ganymede_hardening)
if(GANYMEDE_SANITIZE)
  # The checks that are left out look at every access to memory or at every step of a pointer: AddressSanitizer sees what is wrong with
  # what is read or written there, and they are a third of the time to compile.
  # g++ 12 takes members of std::regex for uninitialized under the sanitizers.
  target_compile_options(ganymede_flags INTERFACE -fsanitize=address,undefined -fno-sanitize=null,alignment,vptr,object-size,pointer-overflow
                         -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  # An empty optional, an index past the end of a vector, an iterator past its range: neither of the two sees all of them.
  target_compile_definitions(ganymede_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(ganymede_flags INTERFACE -fsanitize=address,undefined)
  # A program at a fixed address needs not relocate the million addresses in the sanitizers' tables: it starts in 0.6 of the time.
  target_link_options(ganymede_flags INTERFACE "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>")
endif()
if(GANYMEDE_FUZZ AND NOT GANYMEDE_FUZZ_ENGINE)
  # What libFuzzer steers by, and what llvm-cov counts lines by.
  target_compile_options(ganymede_flags INTERFACE -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping
                         -Wno-unknown-warning-option)
  target_link_options(ganymede_flags INTERFACE -fprofile-instr-generate)
endif()

if(GANYMEDE_THREAD_SANITIZER)
  target_compile_options(ganymede_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan -Wno-maybe-uninitialized)
  target_link_options(ganymede_flags INTERFACE -fsanitize=thread)
endif()

# Headers of other projects that most files include are compiled once for each level of optimisation, and once for all tests. A file still
# includes what it uses: the preset `separate` builds without.
option(GANYMEDE_PRECOMPILE "Compile headers of other projects that most files include only once" ON)
set(GANYMEDE_PRECOMPILED_HEADERS
    <fmt/format.h> <fmt/ranges.h> <algorithm> <array> <charconv> <chrono> <cmath> <filesystem> <functional> <map> <memory> <numeric> <optional>
    <ranges> <set> <span> <sstream> <string> <unordered_map> <vector>)

#   ganymede_optimise(sim_engine_test -O0 TESTS)
#
# compiles the target at this level, and with the headers that were compiled at this level for all libraries or, TESTS, for all tests.
# Its other options for the compiler must be those of ganymede_flags, or the compiler does not take them.
function(ganymede_optimise target level)
  cmake_parse_arguments(ARG "TESTS" "" "" ${ARGN})
  target_compile_options(${target} PRIVATE ${level})
  if(level STREQUAL "-O0")
    set_target_properties(${target} PROPERTIES GANYMEDE_UNOPTIMISED ON)
  endif()
  if(NOT GANYMEDE_PRECOMPILE)
    return()
  endif()
  set(from ganymede_precompiled${level})
  if(ARG_TESTS)
    string(APPEND from _tests)
  endif()
  if(NOT TARGET ${from})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/empty.cpp CONTENT "")
    add_library(${from} STATIC ${CMAKE_BINARY_DIR}/generated/empty.cpp)
    target_link_libraries(${from} PRIVATE ganymede_flags fmt::fmt)
    target_precompile_headers(${from} PRIVATE ${GANYMEDE_PRECOMPILED_HEADERS})
    target_compile_options(${from} PRIVATE ${level})
    if(level STREQUAL "-O0")
      set_target_properties(${from} PROPERTIES GANYMEDE_UNOPTIMISED ON)
    endif()
    if(ARG_TESTS)
      target_link_libraries(${from} PRIVATE GTest::gmock)
      target_precompile_headers(${from} PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
    endif()
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)  # which defines macros
  if(ARG_TESTS)
    target_link_libraries(${target} PRIVATE GTest::gmock)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()

function(ganymede_target_name folder out)
  string(REPLACE "/" "_" name "${folder}")
  set(${out} "${name}" PARENT_SCOPE)
endfunction()

# How much the compiler optimises a folder: -O1, or under the sanitizers -O0 if it computes little. (libFuzzer's targets are all optimised:
# they read millions of files.)
function(ganymede_level folder out)
  set(level -O1)
  if(GANYMEDE_SANITIZE AND NOT GANYMEDE_FUZZ AND NOT folder MATCHES "^(kernel|sim|calibration|common|plan)")
    set(level -O0)
  endif()
  set(${out} ${level} PARENT_SCOPE)
endfunction()

# Puts the sources that include CLI11 first, then those that include common/json.hpp, so that the batches in which files are compiled
# (CMAKE_UNITY_BUILD_BATCH_SIZE) have either all of a header's users or none: CLI11 is read once, and a change to common/json.hpp compiles
# a quarter of the project anew and not all of it.
function(ganymede_sort_sources sources)
  set(parsers "")
  set(readers "")
  set(others "")
  foreach(source IN LISTS ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    set(found "")
    if(source MATCHES "[.]cpp$" AND EXISTS ${path})
      file(STRINGS ${path} found REGEX "^#include (<CLI/CLI[.]hpp>|\"cli/help[.]hpp\"|\"common/json[.]hpp\")")
    endif()
    if(found MATCHES "CLI|help")
      list(APPEND parsers ${source})
    elseif(found)
      list(APPEND readers ${source})
    else()
      list(APPEND others ${source})
    endif()
  endforeach()
  set(${sources} ${parsers} ${readers} ${others} PARENT_SCOPE)
endfunction()

function(ganymede_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  ganymede_target_name(${folder} name)
  ganymede_sort_sources(ARG_SOURCES)
  add_library(ganymede_${name} STATIC ${ARG_SOURCES})
  add_library(ganymede::${name} ALIAS ganymede_${name})

  set(include_root ${CMAKE_BINARY_DIR}/include/${name})
  get_filename_component(parent ${include_root}/${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  if(NOT EXISTS ${include_root}/${folder})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${include_root}/${folder} SYMBOLIC)
  endif()
  target_include_directories(ganymede_${name} PUBLIC ${include_root})

  target_link_libraries(ganymede_${name} PRIVATE ganymede_flags)
  ganymede_level(${folder} level)
  ganymede_optimise(ganymede_${name} ${level})
  foreach(dependency IN LISTS ARG_DEPENDS)
    ganymede_target_name(${dependency} dependency_name)
    target_link_libraries(ganymede_${name} PUBLIC ganymede_${dependency_name})
  endforeach()
  target_link_libraries(ganymede_${name} PUBLIC ${ARG_LINK})

  set(uses ${folder})
  foreach(dependency IN LISTS ARG_DEPENDS)
    get_property(theirs GLOBAL PROPERTY GANYMEDE_USES_${dependency})
    list(APPEND uses ${theirs})
  endforeach()
  list(REMOVE_DUPLICATES uses)
  set_property(GLOBAL PROPERTY GANYMEDE_USES_${folder} "${uses}")
endfunction()

#   ganymede_libraries_first(sim_run_test sim/run)
#
# names the libraries of these folders, and of those that they use, before the program's own objects too, and those that are optimised before
# the others. Of an inline function that several files have compiled the linker keeps the first copy: under the sanitizers that is one that they
# watch, and an optimised one where there is one: with others a plan takes 1.4 times as long, reading JSON thrice as long. (mold and lld keep to
# the order of the command; to others this says nothing. Without the sanitizers it gains nothing, and copies for other instruction sets, of
# kernel/ops/eigen, must not come first.)
function(ganymede_libraries_first program)
  if(NOT GANYMEDE_SANITIZE)
    return()
  endif()
  set(uses "")
  foreach(folder IN LISTS ARGN)
    get_property(theirs GLOBAL PROPERTY GANYMEDE_USES_${folder})
    list(APPEND uses ${theirs})
  endforeach()
  list(REMOVE_DUPLICATES uses)
  foreach(wanted IN ITEMS -O1 -O0)
    foreach(folder IN LISTS uses)
      ganymede_level(${folder} level)
      if(level STREQUAL wanted)
        ganymede_target_name(${folder} name)
        target_link_options(${program} PRIVATE $<TARGET_FILE:ganymede_${name}>)
      endif()
    endforeach()
  endforeach()
endfunction()

#   ganymede_test(sim/steps SOURCES steps_test.cpp)
#
# makes sim_steps_test, a GoogleTest program that may use that folder, the folders in DEPENDS and theirs. OPTIMISED is for tests that
# compute much, themselves or in the library that they test, with which they share the code of inline functions. The others are compiled
# without optimisation, which takes half as long.
#
# The sanitizers' build does not compile tests once more: it links the objects of GANYMEDE_TEST_OBJECTS, the release build, with its own
# libraries, where that build is there; `./test --asan` brings it up to date. Memory is watched where the libraries use it, and not where
# only a test's own lines do. Tests of cli name their build's program, so that both builds compile them.
#
# SECONDS is about how long each process takes under the sanitizers, where that is much: CTest starts what takes longest first.
#
# One process runs all tests of a folder, PROCESSES says in how many they run where one would take minutes, the k-th of n as the CTest test
# sim/steps/k_of_n. APART names further CTest tests, each followed by the pattern of --gtest_filter of those that it runs by themselves: what
# must not run beside others, or what CTest shall report as skipped where all of it is. What cannot run under the sanitizers, or takes long,
# says so itself (tests/support/when.hpp). Which tests ran is written to the folder tests_ran of the build (tools/tests_ran.py).
function(ganymede_test folder)
  cmake_parse_arguments(ARG "OPTIMISED" "PROCESSES;SECONDS" "SOURCES;DEPENDS;LINK;APART" ${ARGN})
  ganymede_target_name(${folder} name)
  ganymede_sort_sources(ARG_SOURCES)
  set(list ${GANYMEDE_TEST_OBJECTS}/test_objects/${name}_test)
  if(GANYMEDE_TEST_OBJECTS AND EXISTS ${list})
    file(READ ${list} objects)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
    list(GET objects 0 first)
    if(EXISTS ${first})
      set(ARG_SOURCES ${objects})
    endif()
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  set_target_properties(${name}_test PROPERTIES LINKER_LANGUAGE CXX)
  if(NOT folder STREQUAL "cli")
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/test_objects/${name}_test CONTENT "$<TARGET_OBJECTS:${name}_test>")
  endif()
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name}_test PRIVATE ganymede_flags ganymede_test_main ${ARG_LINK})
  foreach(dependency IN ITEMS ${folder} LISTS ARG_DEPENDS)
    ganymede_target_name(${dependency} dependency_name)
    if(TARGET ganymede_${dependency_name})
      target_link_libraries(${name}_test PRIVATE ganymede_${dependency_name})
    endif()
  endforeach()
  ganymede_libraries_first(${name}_test ${folder} ${ARG_DEPENDS})
  if(TARGET ganymede_simgrid)
    add_dependencies(${name}_test ganymede_simgrid)
  endif()
  if(ARG_OPTIMISED)
    ganymede_level(${folder} level)
    ganymede_optimise(${name}_test ${level})
  else()
    ganymede_optimise(${name}_test -O0 TESTS)
  endif()
  target_compile_definitions(${name}_test PRIVATE GANYMEDE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             GANYMEDE_BINARY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/ganymede")
  if(NOT ARG_PROCESSES)
    set(ARG_PROCESSES 1)
  endif()
  set(apart "")
  while(ARG_APART)
    list(POP_FRONT ARG_APART test pattern)
    list(APPEND apart ${pattern})
    ganymede_add_test(${folder}/${test} ${name}_test ${pattern} 0 1)
  endwhile()
  list(JOIN apart ":" apart)
  foreach(number RANGE 1 ${ARG_PROCESSES})
    math(EXPR shard "${number} - 1")
    ganymede_add_test(${folder}/${number}_of_${ARG_PROCESSES} ${name}_test "*-${apart}" ${shard} ${ARG_PROCESSES})
    if(ARG_SECONDS)
      set_tests_properties(${folder}/${number}_of_${ARG_PROCESSES} PROPERTIES COST ${ARG_SECONDS})
    endif()
  endforeach()
endfunction()

function(ganymede_add_test test program filter shard processes)
  add_test(NAME ${test} COMMAND ${program} --gtest_brief=1 --gtest_filter=${filter})
  string(REPLACE "/" "." file ${test})
  # With a fixed seed rapidcheck draws the same cases in every run; for others set RC_PARAMS and run the program itself.
  set(cases "seed=1")
  if(GANYMEDE_SANITIZE)
    string(APPEND cases " max_success=50")  # half of them, each of which takes several times as long
  endif()
  set_tests_properties(${test} PROPERTIES ENVIRONMENT
    "RC_PARAMS=${cases};GTEST_TOTAL_SHARDS=${processes};GTEST_SHARD_INDEX=${shard};GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/tests_ran/${file}.xml"
    TIMEOUT 3600)  # trainings of minutes one after the other, on a loaded machine
endfunction()
