# What `cmake --install` puts where, and the Debian packages that `cpack -G DEB` makes of it: the program, and one package for each
# module that it loads when it is wanted, so that it needs neither MPI nor CUDA itself.

install(TARGETS ganymede RUNTIME DESTINATION bin COMPONENT ganymede)
# The program looks for modules in ../lib/ganymede; that of SimGrid comes with it.
install(TARGETS ganymede_simgrid LIBRARY DESTINATION lib/ganymede COMPONENT ganymede)
set(modules "")
foreach(module mpi cuda)
  if(TARGET ganymede_${module})
    install(TARGETS ganymede_${module} LIBRARY DESTINATION lib/ganymede COMPONENT ${module})
    # A package of its own, whose licence is the program's.
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/links)
    file(CREATE_LINK ganymede ${CMAKE_BINARY_DIR}/links/ganymede-${module} SYMBOLIC)
    install(FILES ${CMAKE_BINARY_DIR}/links/ganymede-${module} DESTINATION share/doc COMPONENT ${module})
    list(APPEND modules ${module})
  endif()
endforeach()

# Completions and manual pages, written by the program itself: they cannot say anything else than it does.
find_program(GANYMEDE_GZIP gzip REQUIRED)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(GANYMEDE_MAINTAINER "Ganymede developers <ganymede@example.org>" CACHE STRING "Maintainer of the Debian packages; an address that is read, if they are handed on")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, if that is set
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/changelog.Debian CONTENT "ganymede (@PROJECT_VERSION@-@CPACK_DEBIAN_PACKAGE_RELEASE@) unstable; urgency=medium

  * As changelog.gz says.

 -- @GANYMEDE_MAINTAINER@  @date@
" @ONLY)
set(share ${CMAKE_BINARY_DIR}/share)
set(bash ${share}/bash-completion/completions)
set(zsh ${share}/zsh/vendor-completions)
set(fish ${share}/fish/vendor_completions.d)
set(man ${share}/man/man1)
set(doc ${share}/doc/ganymede)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/share.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${share}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${bash} ${zsh} ${fish} ${man} ${doc}
  COMMAND ganymede completion bash -o ${bash}/ganymede
  COMMAND ganymede completion zsh -o ${zsh}/_ganymede
  COMMAND ganymede completion fish -o ${fish}/ganymede.fish
  COMMAND ganymede man --folder ${man}
  COMMAND sh -c "${GANYMEDE_GZIP} -9 -n '${man}'/*.1"
  COMMAND sh -c "${GANYMEDE_GZIP} -9 -n <'${PROJECT_SOURCE_DIR}/CHANGELOG.md' >'${doc}/changelog.gz'"
  COMMAND sh -c "${GANYMEDE_GZIP} -9 -n <'${CMAKE_BINARY_DIR}/changelog.Debian' >'${doc}/changelog.Debian.gz'"
  COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/share.stamp
  DEPENDS ganymede ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  COMMENT "Writing completions and manual pages" VERBATIM)
add_custom_target(ganymede_share ALL DEPENDS ${CMAKE_BINARY_DIR}/share.stamp)
install(DIRECTORY ${share}/ DESTINATION share COMPONENT ganymede)

install(FILES README.md LICENSE packaging/copyright DESTINATION share/doc/ganymede COMPONENT ganymede)
install(DIRECTORY docs/ DESTINATION share/doc/ganymede/docs COMPONENT ganymede FILES_MATCHING PATTERN "*.md" PATTERN "*.json" PATTERN "*.png")
include(cmake/sbom.cmake)
# Of what is embedded in the pages that the program writes.
install(FILES report/page/echarts/LICENSE report/page/echarts/NOTICE DESTINATION share/doc/ganymede/page COMPONENT ganymede)
# The studies of the documentation, with what they name.
install(DIRECTORY studies/ DESTINATION share/ganymede/studies COMPONENT ganymede
        FILES_MATCHING PATTERN "*.json" PATTERN "policies/*.py" PATTERN "CMake*" EXCLUDE)
install(DIRECTORY traces/recorded/ DESTINATION share/ganymede/traces/recorded COMPONENT ganymede FILES_MATCHING PATTERN "*.json")

# ---- Debian packages.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ganymede)
set(CPACK_PACKAGE_VENDOR "Ganymede developers")
set(CPACK_PACKAGE_CONTACT "${GANYMEDE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ganymede ${modules})
set(CPACK_DEB_COMPONENT_INSTALL ON)
# Whoever builds it: the same permissions.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_GANYMEDE_PACKAGE_NAME ganymede)
set(CPACK_COMPONENT_GANYMEDE_DESCRIPTION "simulator of GAN trainings on clouds: time, utilization and cost
Trains a GAN for real on the machine at hand, records every phase of its steps,
and replays them on a SimGrid model of AWS, Google Cloud, Azure, IBM, Genesis
and private clouds, with their links, prices and carbon: how long a training
takes, how busy the hardware is and what it costs, before it is paid for.")
set(CPACK_DEBIAN_GANYMEDE_PACKAGE_SUGGESTS "python3, ganymede-mpi")

set(exactly "ganymede (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME ganymede-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "${exactly}, openmpi-bin")
set(CPACK_COMPONENT_MPI_DESCRIPTION "simulator of GAN trainings on clouds: training by several processes
The module of ganymede that trains data-parallel over MPI: mpirun -n 2 ganymede
train. Simulations do not need it.")
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME ganymede-cuda)
# CUDA, cuDNN and NCCL come from NVIDIA, as packages of several names or as none.
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${exactly}, libc6, libstdc++6")
set(CPACK_COMPONENT_CUDA_DESCRIPTION "simulator of GAN trainings on clouds: training on NVIDIA GPUs
The module of ganymede that trains on NVIDIA GPUs. It needs the CUDA runtime,
cuBLAS, cuDNN 9 and NCCL, which are not part of Debian. Simulations do not need
it.")
include(CPack)
