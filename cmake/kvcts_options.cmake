# Compiler rules that every target follows, and the options of a build.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(KVCTS_CUDA "auto" CACHE STRING "CUDA kernels: auto (where nvcc is found), on, off")
option(KVCTS_TESTS "Build the tests" ON)
option(KVCTS_STATIC "Link libraries statically, for a binary that is carried to another machine" OFF)
option(KVCTS_LIBFUZZER "libFuzzer targets of the parsers (clang++)" OFF)
option(KVCTS_ONE_CPU_TARGET "Only the baseline instruction set of the cpu candidate: sanitizers make the three slow to compile" OFF)
option(KVCTS_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)

# No FMA that is not written, no value-changing optimization, anywhere.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-Wall>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wextra> $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)
if(KVCTS_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=address,undefined)
endif()

if(KVCTS_ONE_CPU_TARGET)
  set(CMAKE_SYSTEM_PROCESSOR generic)  # optimized/ adds the wider ones for x86-64
endif()

if(KVCTS_STATIC)
  # glibc stays shared: the driver is loaded with dlopen.
  add_link_options($<HOST_LINK:-static-libstdc++> $<HOST_LINK:-static-libgcc>)
endif()

find_program(KVCTS_CCACHE ccache)
if(KVCTS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache asks for where a header is precompiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${KVCTS_CCACHE})
endif()

set(KVCTS_WITH_CUDA OFF)
if(NOT KVCTS_CUDA STREQUAL "off")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES OFF)  # -gencode in optimized/cuda: CMake 3.25 does not know 100a
    enable_language(CUDA)
    # CMake 3.25 does not know nvcc 13's flag.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    # CMake 3.25 knows no C++20 for nvcc: each CUDA target passes -std itself.
    set(KVCTS_WITH_CUDA ON)
    if(KVCTS_CCACHE)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${KVCTS_CCACHE})
    endif()
  elseif(KVCTS_CUDA STREQUAL "on")
    message(FATAL_ERROR "KVCTS_CUDA=on, but nvcc was not found: install the CUDA toolkit 13 or set CMAKE_CUDA_COMPILER")
  endif()
endif()
message(STATUS "KVCTS: CUDA kernels ${KVCTS_WITH_CUDA}")

# Precompiles the headers of most files of a target: the standard ones and those named. It takes 0.6
# to 1 s off each file. All but tests still include what they use: clang-tidy compiles them without.
function(kvcts_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional>
      <set> <span> <stdexcept> <string> <string_view> <utility> <vector> ${ARGN})
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
  endif()
endfunction()
# With those of another target, which has the same options.
function(kvcts_precompiled_as target other)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${target} REUSE_FROM ${other})
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# Tests of label cuda are registered where there is a device.
set(KVCTS_HAS_DEVICE OFF)
if(KVCTS_WITH_CUDA)
  find_program(KVCTS_NVIDIA_SMI nvidia-smi)
  if(KVCTS_NVIDIA_SMI)
    execute_process(COMMAND ${KVCTS_NVIDIA_SMI} -L RESULT_VARIABLE no_device
                    OUTPUT_QUIET ERROR_QUIET)
    if(no_device EQUAL 0)
      set(KVCTS_HAS_DEVICE ON)
    endif()
  endif()
endif()

# Tests of label cuda have a GPU each, where ctest is given the machine's (cmake/gpu_resources), and
# start through a script that shows them that one alone.
set(KVCTS_CUDA_TEST LABELS cuda RESOURCE_GROUPS gpus:1)
function(kvcts_starts_on_gpu target)
  set_target_properties(${target} PROPERTIES
                        CROSSCOMPILING_EMULATOR ${CMAKE_SOURCE_DIR}/cmake/on_gpu)
endfunction()

# kvcts_add_tests(NAME FOLDER_TARGET LABELS... ): one GoogleTest executable a folder, each test its
# own ctest entry.
function(kvcts_add_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES;LABELS")
  if(NOT KVCTS_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE KVCTS_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  # Compiled once, run once: a third of the compiler's time less than with -O3.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if("cuda" IN_LIST arg_LABELS)
    set_property(GLOBAL APPEND PROPERTY KVCTS_DEVICE_TESTS ${name})
  endif()
  # NO_PRETTY_VALUES: a parameter printed as raw bytes would change the name from run to run.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES PROPERTIES LABELS "${arg_LABELS}")
endfunction()
