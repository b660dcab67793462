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
if(GANYMEDE_SANITIZE)
  # g++ 12 takes members of std::regex for uninitialized under the sanitizers.
  target_compile_options(ganymede_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
                         -Wno-maybe-uninitialized)
  target_link_options(ganymede_flags INTERFACE -fsanitize=address,undefined)
endif()

function(ganymede_target_name folder out)
  string(REPLACE "/" "_" name "${folder}")
  set(${out} "${name}" PARENT_SCOPE)
endfunction()

function(ganymede_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  ganymede_target_name(${folder} name)
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
  foreach(dependency IN LISTS ARG_DEPENDS)
    ganymede_target_name(${dependency} dependency_name)
    target_link_libraries(ganymede_${name} PUBLIC ganymede_${dependency_name})
  endforeach()
  target_link_libraries(ganymede_${name} PUBLIC ${ARG_LINK})
endfunction()

#   ganymede_test(sim/steps SOURCES steps_test.cpp LONG Sweeps.* *Differential*)
#
# makes sim_step_test, a GoogleTest program that may use that folder, the folders in DEPENDS and theirs. LONG lists
# patterns of --gtest_filter: these tests take long (10 s of processor time or more) and get the CTest label `long`.
# `ctest --label-exclude long` leaves them out. OPTIMISED is for tests that compute much themselves. The others are
# compiled without optimisation, which takes half as long; the libraries that they test are optimised all the same.
function(ganymede_test folder)
  cmake_parse_arguments(ARG "OPTIMISED" "" "SOURCES;DEPENDS;LINK;LONG" ${ARGN})
  ganymede_target_name(${folder} name)
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ganymede_flags GTest::gmock GTest::gtest_main ${ARG_LINK})
  foreach(dependency IN ITEMS ${folder} LISTS ARG_DEPENDS)
    ganymede_target_name(${dependency} dependency_name)
    if(TARGET ganymede_${dependency_name})
      target_link_libraries(${name}_test PRIVATE ganymede_${dependency_name})
    endif()
  endforeach()
  if(NOT ARG_OPTIMISED)
    target_compile_options(${name}_test PRIVATE -O0)
  endif()
  target_compile_definitions(${name}_test PRIVATE GANYMEDE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             GANYMEDE_BINARY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/ganymede")
  # With a fixed seed rapidcheck draws the same cases in every run; for others set RC_PARAMS and run the program itself.
  # NO_PRETTY_VALUES names a parameter without a name by its index, because some would print as whole files or addresses.
  set(common TEST_PREFIX ${folder}/ DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES)
  set(environment ENVIRONMENT RC_PARAMS=seed=1)
  if(NOT ARG_LONG OR CMAKE_VERSION VERSION_LESS 3.22)  # which cannot filter tests: none is labelled
    gtest_discover_tests(${name}_test ${common} PROPERTIES ${environment})
    return()
  endif()
  list(JOIN ARG_LONG ":" long)
  gtest_discover_tests(${name}_test ${common} TEST_FILTER "-${long}" TEST_LIST ${name}_short PROPERTIES ${environment})
  gtest_discover_tests(${name}_test ${common} TEST_FILTER "${long}" TEST_LIST ${name}_long
                       PROPERTIES ${environment} LABELS long)
endfunction()
