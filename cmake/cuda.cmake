# CUDA 12 or 13, cuDNN and NCCL for the GPU backend, wherever they are: NVIDIA's packages, or Python wheels (site-packages/nvidia,
# whose folder GANYMEDE_NVIDIA_WHEELS names). Without them the project builds without that backend and says so.
#
# Sets GANYMEDE_CUDA_FOUND and the target ganymede_cuda_libraries.

option(GANYMEDE_CUDA "Build the GPU backend where CUDA is found" ON)
set(GANYMEDE_NVIDIA_WHEELS "" CACHE PATH "The folder nvidia of Python wheels with CUDA's libraries")
set(GANYMEDE_CUDA_ARCHITECTURES "" CACHE STRING
    "GPUs to build for, as CMAKE_CUDA_ARCHITECTURES takes them, for example 70-real;90; empty: all that nvcc knows")
set(GANYMEDE_CUDA_FOUND OFF)
if(NOT GANYMEDE_CUDA)
  return()
endif()

find_program(GANYMEDE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT GANYMEDE_NVCC)
  message(STATUS "GPU backend: not built, no nvcc")
  return()
endif()

# Earlier compilers than that of CUDA 12.0 do not know C++20.
execute_process(COMMAND ${GANYMEDE_NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
string(REGEX MATCH "release ([0-9.]+)" nvcc_version "${nvcc_version}")
set(nvcc_version "${CMAKE_MATCH_1}")
if(nvcc_version VERSION_LESS 12.0)
  message(STATUS "GPU backend: not built, ${GANYMEDE_NVCC} is of CUDA ${nvcc_version}, expected 12.0 or later")
  return()
endif()

get_filename_component(toolkit "${GANYMEDE_NVCC}" REALPATH)
get_filename_component(toolkit "${toolkit}" DIRECTORY)
get_filename_component(toolkit "${toolkit}" DIRECTORY)
set(roots ${toolkit})
if(GANYMEDE_NVIDIA_WHEELS)
  foreach(wheel IN ITEMS cudnn nccl cu13 cublas)  # the wheels of CUDA 12 have a folder for each library
    list(APPEND roots ${GANYMEDE_NVIDIA_WHEELS}/${wheel})
  endforeach()
endif()
# Wheels have no plain lib*.so.
find_path(GANYMEDE_CUDNN_HEADERS cudnn.h HINTS ${roots} PATH_SUFFIXES include)
find_library(GANYMEDE_CUDNN NAMES cudnn libcudnn.so.9 HINTS ${roots} PATH_SUFFIXES lib64 lib)
find_path(GANYMEDE_NCCL_HEADERS nccl.h HINTS ${roots} PATH_SUFFIXES include)
find_library(GANYMEDE_NCCL NAMES nccl libnccl.so.2 HINTS ${roots} PATH_SUFFIXES lib64 lib)
find_path(GANYMEDE_CUBLAS_HEADERS cublas_v2.h HINTS ${roots} PATH_SUFFIXES include)
find_library(GANYMEDE_CUBLAS NAMES cublas libcublas.so.13 libcublas.so.12 HINTS ${roots} PATH_SUFFIXES lib64 lib)
find_library(GANYMEDE_CUBLASLT NAMES cublasLt libcublasLt.so.13 libcublasLt.so.12 HINTS ${roots} PATH_SUFFIXES lib64 lib)
foreach(part CUDNN_HEADERS CUDNN NCCL_HEADERS NCCL CUBLAS_HEADERS CUBLAS CUBLASLT)
  if(NOT GANYMEDE_${part})
    message(STATUS "GPU backend: not built, ${part} not found beside ${GANYMEDE_NVCC}")
    return()
  endif()
endforeach()

# Every generation that the compiler knows, so that one module serves all; the newest also as code that later ones translate.
# CUDA 13 dropped Pascal and Volta (P100, V100): for them CUDA 12 and a cuDNN of at most 9.10 are needed. CMake's CUDAARCHS in the
# environment chooses others too.
if(GANYMEDE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${GANYMEDE_CUDA_ARCHITECTURES})
elseif(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  execute_process(COMMAND ${GANYMEDE_NVCC} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  set(CMAKE_CUDA_ARCHITECTURES "")
  foreach(architecture IN ITEMS 60 61 70 75 80 86 89 90 100 103)
    if(known MATCHES "compute_${architecture}\n")
      list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture}-real)
    endif()
  endforeach()
  if(known MATCHES "compute_120\n")
    list(APPEND CMAKE_CUDA_ARCHITECTURES 120)
  else()
    list(APPEND CMAKE_CUDA_ARCHITECTURES 90-virtual)
  endif()
endif()

# A toolkit that does not work with this compiler is none.
set(ENV{CUDACXX} ${GANYMEDE_NVCC})
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "GPU backend: not built for ${CMAKE_CUDA_ARCHITECTURES}, ${GANYMEDE_NVCC} does not work here")
  return()
endif()
enable_language(CUDA)
set(CMAKE_CUDA_FLAGS_RELEASE "-O2")
# CMake before 3.26 does not know that nvcc 13 speaks C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()

add_library(ganymede_cuda_libraries INTERFACE)
target_include_directories(ganymede_cuda_libraries SYSTEM INTERFACE ${GANYMEDE_CUDNN_HEADERS} ${GANYMEDE_NCCL_HEADERS} ${toolkit}/include
                           ${GANYMEDE_CUBLAS_HEADERS})
target_link_libraries(ganymede_cuda_libraries INTERFACE ${GANYMEDE_CUDNN} ${GANYMEDE_NCCL} ${GANYMEDE_CUBLAS} ${GANYMEDE_CUBLASLT})
message(STATUS "GPU backend: built for ${CMAKE_CUDA_ARCHITECTURES} by ${GANYMEDE_NVCC}")
set(GANYMEDE_CUDA_FOUND ON)
