# ganymede.spdx.json: what the program consists of, as SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/). It is installed and so
# becomes part of the packages. tests/install/check_sbom.py reads it.
#
#   ganymede_sbom_package(fmt VERSION 9.1.0 LICENSE MIT HOME https://fmt.dev LINKED libfmt)
#
# adds a library. LINKED: the beginning of the name of the shared library that the program or a module loads; without it the
# library's code is in the program itself.

set(GANYMEDE_SBOM_PACKAGES "")
set(GANYMEDE_SBOM_RELATIONS "")

function(ganymede_sbom_package name)
  cmake_parse_arguments(ARG "" "VERSION;LICENSE;HOME;LINKED" "" ${ARGN})
  string(REGEX REPLACE "[^A-Za-z0-9.-]" "-" id "SPDXRef-${name}")
  if(NOT ARG_VERSION)
    set(ARG_VERSION NOASSERTION)
  endif()
  if(ARG_LINKED)
    set(relation DYNAMIC_LINK)
    set(file ",\n      \"packageFileName\": \"${ARG_LINKED}\"")
  else()
    set(relation STATIC_LINK)
    set(file "")
  endif()
  set(GANYMEDE_SBOM_PACKAGES "${GANYMEDE_SBOM_PACKAGES},
    { \"name\": \"${name}\",
      \"SPDXID\": \"${id}\",
      \"versionInfo\": \"${ARG_VERSION}\",
      \"downloadLocation\": \"${ARG_HOME}\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"${ARG_LICENSE}\",
      \"licenseDeclared\": \"${ARG_LICENSE}\",
      \"copyrightText\": \"NOASSERTION\"${file} }" PARENT_SCOPE)
  set(GANYMEDE_SBOM_RELATIONS "${GANYMEDE_SBOM_RELATIONS},
    { \"spdxElementId\": \"SPDXRef-ganymede\", \"relationshipType\": \"${relation}\", \"relatedSpdxElement\": \"${id}\" }" PARENT_SCOPE)
endfunction()

# Header libraries, whose code is in the program.
ganymede_sbom_package(nlohmann-json VERSION "${nlohmann_json_VERSION}" LICENSE MIT HOME https://github.com/nlohmann/json)
ganymede_sbom_package(CLI11 VERSION "${CLI11_VERSION}" LICENSE BSD-3-Clause HOME https://github.com/CLIUtils/CLI11)
ganymede_sbom_package(Eigen VERSION "${Eigen3_VERSION}" LICENSE MPL-2.0 HOME https://gitlab.com/libeigen/eigen)
ganymede_sbom_package(Boost VERSION "" LICENSE BSL-1.0 HOME https://www.boost.org)
# Embedded in pages that the program writes.
file(READ ${PROJECT_SOURCE_DIR}/report/page/echarts/package.json bundle)
string(REGEX MATCH "\"echarts\": *\"[^0-9]*([0-9.]+)\"" found "${bundle}")
ganymede_sbom_package(echarts VERSION "${CMAKE_MATCH_1}" LICENSE "Apache-2.0 AND BSD-3-Clause AND 0BSD" HOME https://echarts.apache.org)
# Shared libraries.
ganymede_sbom_package(SimGrid VERSION "${SimGrid_VERSION}" LICENSE LGPL-2.1-only HOME https://simgrid.org LINKED libsimgrid)
ganymede_sbom_package(fmt VERSION "${fmt_VERSION}" LICENSE MIT HOME https://fmt.dev LINKED libfmt)
ganymede_sbom_package(OpenSSL VERSION "${OPENSSL_VERSION}" LICENSE Apache-2.0 HOME https://www.openssl.org LINKED libcrypto)
ganymede_sbom_package(cpp-httplib VERSION "${HTTPLIB_VERSION}" LICENSE MIT HOME https://github.com/yhirose/cpp-httplib LINKED libcpp-httplib)
ganymede_sbom_package(yaml-cpp VERSION "${yaml-cpp_VERSION}" LICENSE MIT HOME https://github.com/jbeder/yaml-cpp LINKED libyaml-cpp)
ganymede_sbom_package(Expat VERSION "${EXPAT_VERSION_STRING}" LICENSE MIT HOME https://libexpat.github.io LINKED libexpat)
ganymede_sbom_package(libpng VERSION "${PNG_VERSION_STRING}" LICENSE libpng-2.0 HOME http://www.libpng.org LINKED libpng)
ganymede_sbom_package(libjpeg-turbo VERSION "" LICENSE "IJG AND BSD-3-Clause AND Zlib" HOME https://libjpeg-turbo.org LINKED libturbojpeg)
ganymede_sbom_package(zlib VERSION "${ZLIB_VERSION_STRING}" LICENSE Zlib HOME https://zlib.net LINKED libz)
if(TARGET ganymede_mpi)
  ganymede_sbom_package(MPI VERSION "" LICENSE NOASSERTION HOME https://www.mpi-forum.org LINKED libmpi)
endif()
if(TARGET ganymede_cuda)
  foreach(library cublas cudnn nccl cudart)
    ganymede_sbom_package(${library} VERSION "" LICENSE NOASSERTION HOME https://developer.nvidia.com LINKED lib${library})
  endforeach()
endif()

string(SHA256 content "${GANYMEDE_SBOM_PACKAGES}")
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)  # SOURCE_DATE_EPOCH, if that is set
set(sbom "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"ganymede-${PROJECT_VERSION}\",
  \"documentNamespace\": \"https://example.org/spdx/ganymede-${PROJECT_VERSION}-${content}\",
  \"creationInfo\": { \"created\": \"${created}\", \"creators\": [\"Tool: CMake-${CMAKE_VERSION}\", \"Organization: Ganymede developers\"] },
  \"packages\": [
    { \"name\": \"ganymede\",
      \"SPDXID\": \"SPDXRef-ganymede\",
      \"versionInfo\": \"${PROJECT_VERSION}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"Apache-2.0\",
      \"licenseDeclared\": \"Apache-2.0\",
      \"copyrightText\": \"Ganymede developers\" }${GANYMEDE_SBOM_PACKAGES}
  ],
  \"relationships\": [
    { \"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-ganymede\" }${GANYMEDE_SBOM_RELATIONS}
  ]
}
")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/ganymede.spdx.json CONTENT "${sbom}")
install(FILES ${CMAKE_BINARY_DIR}/ganymede.spdx.json DESTINATION share/doc/ganymede COMPONENT ganymede)
