# CUDA 12 or 13, cuDNN and NCCL for the GPU backend, wherever they are: NVIDIA's packages, or Python wheels (site-packages/nvidia,
# whose folder GANYMEDE_NVIDIA_WHEELS names). The backend's module takes minutes to compile, so AUTO builds it only where a GPU is, and
# for that GPU. Its sources are compiled as plain C++ too, for tests without a GPU, wherever the headers are.
#
# Sets GANYMEDE_CUDA_HEADERS_FOUND, which has the target ganymede_cuda_headers, and GANYMEDE_CUDA_MODULE, whether the module is built, which
# has the target ganymede_cuda_libraries.

# A build folder from when ON meant "where CUDA is found", and was the default.
get_property(type CACHE GANYMEDE_CUDA PROPERTY TYPE)
if(type STREQUAL "BOOL" AND GANYMEDE_CUDA)
  set_property(CACHE GANYMEDE_CUDA PROPERTY VALUE AUTO)
  set_property(CACHE GANYMEDE_CUDA PROPERTY TYPE STRING)
endif()
set(GANYMEDE_CUDA AUTO CACHE STRING
    "Build the GPU backend: AUTO where an NVIDIA GPU is and for that GPU, ON everywhere and for all GPUs, OFF never")
set_property(CACHE GANYMEDE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GANYMEDE_NVIDIA_WHEELS "" CACHE PATH "The folder nvidia of Python wheels with CUDA's libraries")
set(GANYMEDE_CUDA_ARCHITECTURES "" CACHE STRING
    "GPUs to build for, as CMAKE_CUDA_ARCHITECTURES takes them, for example 70-real;90; empty: see GANYMEDE_CUDA")
set(GANYMEDE_CUDA_HEADERS_FOUND OFF)
set(GANYMEDE_CUDA_MODULE OFF)
set(asked OFF)
if(NOT GANYMEDE_CUDA MATCHES "^[Aa][Uu][Tt][Oo]$")
  if(NOT GANYMEDE_CUDA MATCHES "^(ON|OFF|TRUE|FALSE|YES|NO|[01])$")
    message(FATAL_ERROR "GANYMEDE_CUDA is '${GANYMEDE_CUDA}', expected AUTO, ON or OFF")
  endif()
  if(NOT GANYMEDE_CUDA)
    return()
  endif()
  set(asked ON)
endif()

# Says why the module is not built. Whoever has asked for it by ON must not get a program without it.
function(ganymede_no_cuda_module reason)
  message(STATUS "GPU backend: not built${reason}")
  if(asked)
    message(FATAL_ERROR "GANYMEDE_CUDA is ON, but the GPU backend cannot be built, for the reason above. AUTO and OFF build without it.")
  endif()
endfunction()

find_program(GANYMEDE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT GANYMEDE_NVCC)
  ganymede_no_cuda_module(", no nvcc")
  return()
endif()

# Earlier compilers than that of CUDA 12.0 do not know C++20.
execute_process(COMMAND ${GANYMEDE_NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
string(REGEX MATCH "release ([0-9.]+)" nvcc_version "${nvcc_version}")
set(nvcc_version "${CMAKE_MATCH_1}")
if(nvcc_version VERSION_LESS 12.0)
  ganymede_no_cuda_module(", ${GANYMEDE_NVCC} is of CUDA ${nvcc_version}, expected 12.0 or later")
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
foreach(part CUDNN_HEADERS NCCL_HEADERS CUBLAS_HEADERS)
  if(NOT GANYMEDE_${part})
    ganymede_no_cuda_module(", ${part} not found beside ${GANYMEDE_NVCC}")
    return()
  endif()
endforeach()
add_library(ganymede_cuda_headers INTERFACE)
target_include_directories(ganymede_cuda_headers SYSTEM INTERFACE ${GANYMEDE_CUDNN_HEADERS} ${GANYMEDE_NCCL_HEADERS} ${toolkit}/include
                           ${GANYMEDE_CUBLAS_HEADERS})
set(GANYMEDE_CUDA_HEADERS_FOUND ON)

if(GANYMEDE_SANITIZE)
  message(STATUS "GPU backend: not built under the sanitizers, which do not see what runs on a GPU")
  return()
endif()
foreach(part CUDNN NCCL CUBLAS CUBLASLT)
  if(NOT GANYMEDE_${part})
    ganymede_no_cuda_module(", ${part} not found beside ${GANYMEDE_NVCC}")
    return()
  endif()
endforeach()

# The generations of GPUs that this compiler knows.
execute_process(COMMAND ${GANYMEDE_NVCC} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
string(REGEX MATCHALL "[0-9]+" known "${known}")
list(SORT known COMPARE NATURAL)

# Those of the GPUs that are here, where the backend is for them alone.
set(here "")
if(NOT asked)
  find_program(GANYMEDE_NVIDIA_SMI nvidia-smi)
  if(GANYMEDE_NVIDIA_SMI)
    execute_process(COMMAND ${GANYMEDE_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
                    RESULT_VARIABLE failed OUTPUT_VARIABLE seen ERROR_QUIET)
    if(failed)
      set(seen "")
    endif()
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" here "${seen}")
    string(REPLACE "." "" here "${here}")
    list(REMOVE_DUPLICATES here)
  endif()
  if(NOT here AND NOT EXISTS /dev/nvidia0)
    ganymede_no_cuda_module(", no NVIDIA GPU is here; -DGANYMEDE_CUDA=ON builds it all the same")
    return()
  endif()
endif()

# Without GPUs that are here, every generation that the compiler knows, so that one module serves all; the newest also as code that later ones
# translate. CUDA 13 dropped Pascal and Volta (P100, V100): for them CUDA 12 and a cuDNN of at most 9.10 are needed. CMake's CUDAARCHS in
# the environment chooses others too.
set(why "")
if(GANYMEDE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${GANYMEDE_CUDA_ARCHITECTURES})
elseif(DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS})
else()  # whatever CMake has kept of an earlier choice
  set(CMAKE_CUDA_ARCHITECTURES "")
  if(here)
    set(why ", which is here; -DGANYMEDE_CUDA=ON builds for all GPUs")
    list(GET known -1 newest)
    foreach(architecture IN LISTS here)
      if(architecture IN_LIST known)
        list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture}-real)
      elseif(architecture GREATER newest)
        list(APPEND CMAKE_CUDA_ARCHITECTURES ${newest}-virtual)
      endif()
    endforeach()
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      ganymede_no_cuda_module(", CUDA ${nvcc_version} no longer compiles for the GPU that is here, of generation ${here}")
      return()
    endif()
  else()
    foreach(architecture IN ITEMS 60 61 70 75 80 86 89 90 100 103)
      if(architecture IN_LIST known)
        list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture}-real)
      endif()
    endforeach()
    if(120 IN_LIST known)
      list(APPEND CMAKE_CUDA_ARCHITECTURES 120)
    else()
      list(APPEND CMAKE_CUDA_ARCHITECTURES 90-virtual)
    endif()
  endif()
endif()

# A toolkit that does not work with this compiler is none.
set(ENV{CUDACXX} ${GANYMEDE_NVCC})
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  ganymede_no_cuda_module(" for ${CMAKE_CUDA_ARCHITECTURES}, ${GANYMEDE_NVCC} does not work here")
  return()
endif()
enable_language(CUDA)
set(CMAKE_CUDA_FLAGS_RELEASE "-O2")
# CMake before 3.26 does not know that nvcc 13 speaks C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()

add_library(ganymede_cuda_libraries INTERFACE)
target_link_libraries(ganymede_cuda_libraries INTERFACE ganymede_cuda_headers ${GANYMEDE_CUDNN} ${GANYMEDE_NCCL} ${GANYMEDE_CUBLAS}
                      ${GANYMEDE_CUBLASLT})
message(STATUS "GPU backend: built by ${GANYMEDE_NVCC} for ${CMAKE_CUDA_ARCHITECTURES}${why}")
set(GANYMEDE_CUDA_MODULE ON)
