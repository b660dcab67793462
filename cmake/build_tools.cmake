# Programs that make the build quicker, used where they are: `ccache`, which keeps what was compiled, and the linker `mold`.

option(GANYMEDE_CCACHE "Compile by ccache where it is installed" ON)
find_program(GANYMEDE_CCACHE_PROGRAM ccache)
if(GANYMEDE_CCACHE AND GANYMEDE_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache asks for of those who compile headers first.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
                                  ${GANYMEDE_CCACHE_PROGRAM})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

option(GANYMEDE_MOLD "Link by mold where it is installed" ON)
find_program(GANYMEDE_MOLD_PROGRAM mold)
if(GANYMEDE_MOLD AND GANYMEDE_MOLD_PROGRAM AND
   (CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)))
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=mold>)
endif()
